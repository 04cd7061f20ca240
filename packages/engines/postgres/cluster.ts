/**
 * One database cluster in one folder. It is created atomically, can be opened again after a kill -9, and is never opened by
 * two servers or by another major version.
 *
 *   <dataFolder>/data            the cluster
 *   <dataFolder>/data/password   of its superuser, readable by its owner only
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile, readlink, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { EngineSetup } from "../engine.ts";
import { isAlive } from "../process-tree.ts";
import type { OsUser } from "../supervisor-process.ts";
import type { PostgresBinaries } from "./binaries.ts";

export interface Cluster {
  readonly data: string;
  /** `data` as a command-line argument of a process whose working directory it is. */
  readonly dataArgument: string;
  readonly password: string;
  /** Rejects if a server runs on it. Removes a stale pid file that would stop the next server. */
  rejectIfRunning(): Promise<void>;
}

const initdbOptions = ["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions"];

/** Sorted by code point, so that the machine's locale changes no result. The built-in provider came with PostgreSQL 17. */
const localeOptions = (major: string): readonly string[] =>
  Number(major) >= 17 ? ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"] : ["--locale=C.UTF-8"];

/** How long to wait for a server that is shutting down. Its supervisor kills it after 30 s. */
const shutdownWaitMs = 35_000;

export async function openCluster(setup: EngineSetup, binaries: PostgresBinaries): Promise<Cluster> {
  const data = join(setup.dataFolder, "data");
  if (!existsSync(data)) await createCluster(setup, binaries, data);
  await rejectIfOtherOwner(data);
  const major = (await readFile(join(data, "PG_VERSION"), "utf8")).trim();
  if (major !== binaries.major) {
    const message = `${setup.dataFolder} holds data of PostgreSQL ${major}, and this is PostgreSQL ${binaries.major}.`;
    throw new Error(`${message} Dump it with the old version and load it into a new folder, or delete it.`);
  }
  return {
    data,
    dataArgument: dataArgument(data, binaries),
    password: (await readFile(join(data, "password"), "utf8")).trim(),
    rejectIfRunning: () => rejectIfRunning(data),
  };
}

async function rejectIfOtherOwner(data: string): Promise<void> {
  const [owner, self] = [(await stat(data)).uid, process.getuid?.() ?? 0];
  if (self === 0 || owner === self) return;
  throw new Error(
    `${data} belongs to user id ${owner}, and this is user id ${self}. Run as that user, or use another folder.`,
  );
}

/**
 * A server that root starts as another user may be unable to reach its data by path (through /root, for example). It can
 * still use its working directory: Linux resolves this link without checking the parent folders.
 */
function dataArgument(data: string, binaries: PostgresBinaries): string {
  return binaries.runAs !== undefined && process.platform === "linux" ? "/proc/self/cwd" : data;
}

/** Creates the cluster in a draft folder and renames it, so that a folder `data` is always complete. */
async function createCluster(setup: EngineSetup, binaries: PostgresBinaries, data: string): Promise<void> {
  const draft = join(setup.dataFolder, `draft-${randomBytes(6).toString("hex")}`);
  setup.supervisor.removeAtExit(draft);
  await mkdir(draft, { recursive: true, mode: 0o700 });
  if (binaries.runAs) {
    await chown(draft, binaries.runAs.uid, binaries.runAs.gid);
    await chmod(setup.supervisor.folder, 0o711); // the user must read the password file in it, and nothing else
  }
  const password = randomBytes(24).toString("base64url");
  const passwordFile = join(setup.supervisor.folder, "password");
  await writeOwnedBy(binaries.runAs, passwordFile, password);
  await initdb(setup, binaries, { draft, passwordFile });
  await rm(passwordFile);
  await writeOwnedBy(binaries.runAs, join(draft, "password"), password);
  await rename(draft, data).catch((error: NodeJS.ErrnoException) => {
    // Another run created the cluster at the same time: use that one.
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

type InitdbPaths = Readonly<Record<"draft" | "passwordFile", string>>;

async function writeOwnedBy(user: OsUser | undefined, file: string, text: string): Promise<void> {
  await writeFile(file, `${text}\n`, { mode: 0o600, flush: true });
  if (user) await chown(file, user.uid, user.gid);
}

async function initdb(setup: EngineSetup, binaries: PostgresBinaries, { draft, passwordFile }: InitdbPaths) {
  const initdbProcess = await setup.supervisor.run({
    file: binaries.initdb,
    args: [
      `--pgdata=${dataArgument(draft, binaries)}`,
      `--pwfile=${passwordFile}`,
      ...initdbOptions,
      ...localeOptions(binaries.major),
      ...(setup.temporary ? ["--no-sync"] : []),
    ],
    env: { LC_ALL: "C", TZ: "UTC", PATH: "/usr/bin:/bin" },
    cwd: draft,
    ...(binaries.runAs && { runAs: binaries.runAs }),
    stopSignal: "SIGKILL",
  });
  const { code } = await initdbProcess.exited;
  if (code !== 0) throw new Error(`initdb failed in ${setup.dataFolder}:\n${setup.supervisor.lastLines()}`);
}

/** How long a server that was just killed, or whose owner was, may still look alive. */
const killedWaitMs = 1_000;

/**
 * PostgreSQL locks its data with a pid file, and treats any live process with that pid as a server. After a reboot or in a
 * container the pid may belong to another program: only then we remove the file. PostgreSQL handles all other cases.
 */
async function rejectIfRunning(data: string): Promise<void> {
  const file = join(data, "postmaster.pid");
  const startedAt = Date.now();
  for (;;) {
    const [pid = "", , , port = "", , , , state = ""] = await readFile(file, "utf8").then(linesOf, () => []);
    if (pid === "" || !isAlive(Number(pid))) return;
    if (!(await isServerOf(Number(pid), data))) return rm(file, { force: true });
    const waitMs = state.trim() === "stopping" ? shutdownWaitMs : killedWaitMs;
    if (Date.now() - startedAt > waitMs) {
      const remedy = "Stop it first, or use another folder.";
      throw new Error(`A PostgreSQL server already runs on ${data} (process ${pid}, port ${port}). ${remedy}`);
    }
    await delay(20);
  }
}

const linesOf = (text: string): string[] => text.split("\n");

/** The working directory of a server is its data folder. Where the system does not show it, the process name must do. */
async function isServerOf(pid: number, data: string): Promise<boolean> {
  try {
    if (process.platform === "linux") return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(data));
    const { stdout } = await promisify(execFile)("ps", ["-p", String(pid), "-o", "comm="]);
    return basename(stdout.trim()) === "postgres";
  } catch {
    return false; // it has exited, or belongs to another user, who cannot open our data
  }
}
