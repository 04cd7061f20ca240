/**
 * The folder .todoke, where `todoke dev` keeps its data, and who is at work in it.
 *
 * One `todoke dev` at a time holds the folder. The lock is the operating system's, on a file, so it ends with the
 * process, whatever ends it; SQLite is how Node reaches such locks. Who holds it is written beside it, and still stands
 * there after a kill -9: then it tells the next one what may have to come to its end first.
 */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CommandFailed } from "./faults.ts";
import { withoutSecrets } from "./settings.ts";

export const dataFolder = ".todoke";
const lockFile = join(dataFolder, "dev.lock");
const holderFile = "dev.json";

/** A `todoke dev`, as it describes itself. */
export interface Holder {
  readonly pid: number;
  /** Of the PostgreSQL that it starts. */
  readonly postgresPort: number;
  /** Known once the database is up. */
  readonly databaseUrl?: string;
  /** Of the OpenID provider that it starts, where it starts one. */
  readonly issuer?: string;
}

export interface HeldFolder extends AsyncDisposable {
  /** The run before this one, when it was killed: what it had started may still be stopping. */
  readonly killed: Holder | undefined;
  /** Tells `todoke doctor` where to look. */
  announce(found: Pick<Holder, "databaseUrl" | "issuer">): Promise<void>;
}

export async function holdFolder(postgresPort: number): Promise<HeldFolder> {
  await mkdir(dataFolder, { recursive: true });
  const lock = takeLock();
  if (!lock) throw alreadyHeld(await readHolder());
  const killed = await readHolder();
  const self: Holder = { pid: process.pid, postgresPort };
  await keep(holderFile, self);
  return {
    killed,
    announce: (found) => keep(holderFile, { ...self, ...found }),
    async [Symbol.asyncDispose]() {
      await rm(join(dataFolder, holderFile), { force: true });
      lock.close();
    },
  };
}

/** The `todoke dev` that is at work in this folder now. */
export async function livingHolder(): Promise<Holder | undefined> {
  const holder = await readHolder();
  if (!holder) return undefined;
  const lock = takeLock();
  lock?.close();
  return lock ? undefined : holder;
}

/** Where the PostgreSQL is that a living `todoke dev` has started in this folder; undefined if it uses another server. */
export async function embeddedDatabase(): Promise<URL | undefined> {
  const holder = await livingHolder();
  const url = URL.parse(holder?.databaseUrl ?? "");
  return url && url.port === String(holder?.postgresPort) ? url : undefined;
}

const busy = 5; // SQLITE_BUSY

/** Longer than `livingHolder` needs to look; a `todoke dev` holds on for much longer. */
const lookMs = 200;

function takeLock(): DatabaseSync | undefined {
  const lock = new DatabaseSync(lockFile, { timeout: lookMs });
  try {
    lock.exec("pragma journal_mode = memory; begin exclusive");
    return lock;
  } catch (error) {
    lock.close();
    if (Object(error).errcode !== busy) throw error;
    return undefined;
  }
}

const readHolder = (): Promise<Holder | undefined> => readKept(holderFile);

/** What `keep` has put under this name into the folder. */
export async function readKept<T>(name: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(join(dataFolder, name), "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Complete or not at all, and for our eyes only: it may hold a password or a key. */
export async function keep(name: string, value: unknown): Promise<void> {
  const file = join(dataFolder, name);
  await writeFile(`${file}.draft`, JSON.stringify(value), { mode: 0o600 });
  await rename(`${file}.draft`, file);
}

function alreadyHeld(holder: Holder | undefined): CommandFailed {
  const who = holder ? ` (process ${holder.pid})` : "";
  const where = holder?.databaseUrl ? ` Its database is ${withoutSecrets(holder.databaseUrl)}.` : "";
  return new CommandFailed(`\`todoke dev\` already runs in this folder${who}.${where} Stop it first.`);
}
