/**
 * Kills a server with all its descendants, and checks whether a process is alive.
 *
 * A process group is not enough: every PostgreSQL backend leads its own. The tree is found by parent pids instead.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** After a SIGKILL a process exits within milliseconds, also on a busy machine. Past this, waiting does not help. */
const exitTimeoutMs = 10_000;

/** Resolves when all of them have exited. */
export async function killTree(root: number): Promise<void> {
  const tree = await stopTree(root);
  for (const pid of tree) sendSignal(pid, "SIGKILL");
  const deadline = Date.now() + exitTimeoutMs;
  while (tree.some(isAlive)) {
    if (Date.now() > deadline) throw new Error(`processes ${tree.filter(isAlive).join(", ")} outlived a kill -9`);
    await delay(5);
  }
}

/** Stops (SIGSTOP) and returns every process of the tree, so that none can fork while we list them. */
async function stopTree(root: number): Promise<number[]> {
  const stopped = new Set<number>([root]);
  sendSignal(root, "SIGSTOP");
  for (let found = 1; found > 0; ) {
    const children = (await listProcesses()).filter(([pid, parent]) => stopped.has(parent) && !stopped.has(pid));
    for (const [pid] of children) {
      sendSignal(pid, "SIGSTOP");
      stopped.add(pid);
    }
    found = children.length;
  }
  return [...stopped];
}

/** A zombie counts as dead: in a container whose init process reaps nothing, it stays in the process table. */
export function isAlive(pid: number): boolean {
  const entry = process.platform === "linux" ? readProcStat(pid) : undefined;
  if (entry !== undefined) return entry.state !== "Z" && entry.state !== "X";
  return sendSignal(pid, 0);
}

/** Returns false if there is no such process. */
function sendSignal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Every process of this machine with its parent pid. */
async function listProcesses(): Promise<[pid: number, parent: number][]> {
  if (process.platform === "linux") {
    const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
    return pids.flatMap((pid) => {
      const entry = readProcStat(pid);
      return entry ? [[pid, entry.parent] as [number, number]] : [];
    });
  }
  const { stdout } = await promisify(execFile)("ps", ["-axo", "pid=,ppid="]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
}

/** "71 (nats-server) S 70 …": the name may contain blanks and brackets, so we read from the last bracket on. */
function readProcStat(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
