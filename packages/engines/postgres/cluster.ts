/**
 * One database cluster in one folder: made once, whole or not at all; opened again by any later run, also after a
 * kill -9; never opened by two servers or by another major version.
 *
 *   <home>/data            the cluster
 *   <home>/data/password   of its superuser, readable by its owner only
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile, readlink, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Site } from "../engine.ts";
import type { Account } from "../keeper.ts";
import { isAlive } from "../process-tree.ts";
import type { Binaries } from "./binaries.ts";

export interface Cluster {
  readonly data: string;
  /** What to call `data` on a command line, in a process whose working directory it is. */
  readonly dataArgument: string;
  readonly password: string;
  /** Rejects when a server is at work on it. Clears away what a killed one left that would stop the next. */
  refuseIfServed(): Promise<void>;
}

/** Text is UTF-8 and sorts by code point by PostgreSQL's own rules, so that no machine's locale changes an answer. */
const sameEverywhere = [
  "--username=postgres",
  "--auth=scram-sha-256",
  "--encoding=UTF8",
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
  "--no-instructions",
];

/** A server on its way out gets this long to be gone: its keeper gives it 30 s at the most. */
const leavingMs = 35_000;

export async function openCluster(site: Site, binaries: Binaries): Promise<Cluster> {
  const data = join(site.home, "data");
  if (!existsSync(data)) await makeCluster(site, binaries, data);
  await refuseIfForeign(data);
  const major = (await readFile(join(data, "PG_VERSION"), "utf8")).trim();
  if (major !== binaries.major) {
    const way = "Dump it with the old version and load it into a new folder, or remove it if it is not needed.";
    throw new Error(`${site.home} holds data of PostgreSQL ${major}, and this is PostgreSQL ${binaries.major}. ${way}`);
  }
  return {
    data,
    dataArgument: dataArgument(data, binaries),
    password: (await readFile(join(data, "password"), "utf8")).trim(),
    refuseIfServed: () => refuseIfServed(data),
  };
}

async function refuseIfForeign(data: string): Promise<void> {
  const [owner, self] = [(await stat(data)).uid, process.getuid?.() ?? 0];
  if (self === 0 || owner === self) return;
  throw new Error(
    `${data} belongs to user id ${owner}, and this is user id ${self}. Run as that user, or use another folder.`,
  );
}

/**
 * A server that root starts under another account may not be able to walk to its data (through /root, say). It can
 * stand in it, though, when it was put there: the kernel follows this link without asking about the way.
 */
function dataArgument(data: string, binaries: Binaries): string {
  return binaries.as !== undefined && process.platform === "linux" ? "/proc/self/cwd" : data;
}

/** Made beside its final place and moved there in one step: a folder `data` is complete, whatever died on the way. */
async function makeCluster(site: Site, binaries: Binaries, data: string): Promise<void> {
  const draft = join(site.home, `draft-${randomBytes(6).toString("hex")}`);
  site.keeper.entrust(draft);
  await mkdir(draft, { recursive: true, mode: 0o700 });
  if (binaries.as) {
    await chown(draft, binaries.as.uid, binaries.as.gid);
    await chmod(site.keeper.folder, 0o711); // the account must get at the file below, and at nothing else
  }
  const password = randomBytes(24).toString("base64url");
  const passwordFile = join(site.keeper.folder, "password");
  await writeFor(binaries.as, passwordFile, password);
  await initdb({ site, binaries, draft, passwordFile });
  await rm(passwordFile);
  await writeFor(binaries.as, join(draft, "password"), password);
  await rename(draft, data).catch((error: NodeJS.ErrnoException) => {
    // Another run made the cluster while we did: then theirs is the one.
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

async function writeFor(account: Account | undefined, file: string, text: string): Promise<void> {
  await writeFile(file, `${text}\n`, { mode: 0o600, flush: true });
  if (account) await chown(file, account.uid, account.gid);
}

async function initdb(run: { site: Site; binaries: Binaries; draft: string; passwordFile: string }): Promise<void> {
  const { site, binaries, draft, passwordFile } = run;
  const job = await site.keeper.run({
    file: binaries.initdb,
    args: [
      `--pgdata=${dataArgument(draft, binaries)}`,
      `--pwfile=${passwordFile}`,
      ...sameEverywhere,
      ...(site.temporary ? ["--no-sync"] : []),
    ],
    env: { LC_ALL: "C", TZ: "UTC", PATH: "/usr/bin:/bin" },
    cwd: draft,
    ...(binaries.as && { as: binaries.as }),
    stop: "SIGKILL",
  });
  const { code } = await job.exited;
  if (code !== 0) throw new Error(`initdb failed in ${site.home}:\n${site.keeper.lastLines()}`);
}

/** What was killed a moment ago, or is about to be told to stop because its owner was, still looks alive for so long. */
const dyingMs = 1_000;

/**
 * PostgreSQL guards its data by a file with its pid, and takes any living process of that number for itself. After a
 * reboot, or in a container, the number may be somebody else's by now: that file we remove. All else is left to it.
 */
async function refuseIfServed(data: string): Promise<void> {
  const file = join(data, "postmaster.pid");
  const lookedAt = Date.now();
  for (;;) {
    const [pid = "", , , port = "", , , , state = ""] = await readFile(file, "utf8").then(linesOf, () => []);
    if (pid === "" || !isAlive(Number(pid))) return;
    if (!(await serves(Number(pid), data))) return rm(file, { force: true });
    const patienceMs = state.trim() === "stopping" ? leavingMs : dyingMs;
    if (Date.now() - lookedAt > patienceMs) {
      const way = "Stop it first, or use another folder.";
      throw new Error(`A PostgreSQL server already runs on ${data} (process ${pid}, port ${port}). ${way}`);
    }
    await delay(20);
  }
}

const linesOf = (text: string): string[] => text.split("\n");

/** A server works in its data folder; where the system does not tell that, its name must do. */
async function serves(pid: number, data: string): Promise<boolean> {
  try {
    if (process.platform === "linux") return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(data));
    const { stdout } = await promisify(execFile)("ps", ["-p", String(pid), "-o", "comm="]);
    return basename(stdout.trim()) === "postgres";
  } catch {
    return false; // gone by now, or another user's, who cannot be serving data of ours
  }
}
