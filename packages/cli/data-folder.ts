/**
 * The data folder of `todoke dev` (.todoke), and the process that uses it.
 *
 * One `todoke dev` at a time locks the folder. The lock is a file lock of the operating system, so it ends with the process,
 * also after a kill -9. Node offers such locks through SQLite. The process describes itself in a file beside the lock. After
 * a kill -9 the file is still there, and the next `todoke dev` knows which database may still be stopping.
 */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CommandFailed } from "./errors.ts";
import { redactUrl } from "./settings.ts";

export const dataFolder = ".todoke";
const lockFile = join(dataFolder, "dev.lock");
const processFile = "dev.json";

/** A running `todoke dev`. */
export interface DevProcess {
  readonly pid: number;
  /** Port of the PostgreSQL server that it starts. */
  readonly postgresPort: number;
  /** Set when the database has started. */
  readonly databaseUrl?: string;
  /** URL of the OpenID provider, if it starts one. */
  readonly issuer?: string;
}

export interface LockedFolder extends AsyncDisposable {
  /** The previous run, if it was killed: its database may still be stopping. */
  readonly killedRun: DevProcess | undefined;
  /** Publishes the URLs for `todoke doctor` and other commands. */
  publish(found: Pick<DevProcess, "databaseUrl" | "issuer">): Promise<void>;
}

export async function lockDataFolder(postgresPort: number): Promise<LockedFolder> {
  await mkdir(dataFolder, { recursive: true });
  const lock = tryLock();
  if (!lock) throw alreadyRunning(await readDevProcess());
  const killedRun = await readDevProcess();
  const self: DevProcess = { pid: process.pid, postgresPort };
  await writeDataFile(processFile, self);
  return {
    killedRun,
    publish: (found) => writeDataFile(processFile, { ...self, ...found }),
    async [Symbol.asyncDispose]() {
      await rm(join(dataFolder, processFile), { force: true });
      lock.close();
    },
  };
}

/** The `todoke dev` that runs in this folder now. */
export async function findRunningDev(): Promise<DevProcess | undefined> {
  const running = await readDevProcess();
  if (!running) return undefined;
  const lock = tryLock();
  lock?.close();
  return lock ? undefined : running;
}

/** URL of the PostgreSQL server that the running `todoke dev` of this folder started; undefined if it uses another. */
export async function embeddedDatabase(): Promise<URL | undefined> {
  const running = await findRunningDev();
  const url = URL.parse(running?.databaseUrl ?? "");
  return url && url.port === String(running?.postgresPort) ? url : undefined;
}

const busy = 5; // SQLITE_BUSY

/** Longer than `findRunningDev` holds the lock. A `todoke dev` holds it much longer. */
const lockTimeoutMs = 200;

function tryLock(): DatabaseSync | undefined {
  const lock = new DatabaseSync(lockFile, { timeout: lockTimeoutMs });
  try {
    lock.exec("pragma journal_mode = memory; begin exclusive");
    return lock;
  } catch (error) {
    lock.close();
    if (Object(error).errcode !== busy) throw error;
    return undefined;
  }
}

const readDevProcess = (): Promise<DevProcess | undefined> => readDataFile(processFile);

/** Undefined if the file does not exist. */
export async function readDataFile<T>(name: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(join(dataFolder, name), "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Writes the file atomically, readable by its owner only: it may contain a password or a key. */
export async function writeDataFile(name: string, value: unknown): Promise<void> {
  const file = join(dataFolder, name);
  await writeFile(`${file}.draft`, JSON.stringify(value), { mode: 0o600 });
  await rename(`${file}.draft`, file);
}

function alreadyRunning(running: DevProcess | undefined): CommandFailed {
  const who = running ? ` (process ${running.pid})` : "";
  const where = running?.databaseUrl ? ` Its database is ${redactUrl(running.databaseUrl)}.` : "";
  return new CommandFailed(`\`todoke dev\` already runs in this folder${who}.${where} Stop it first.`);
}
