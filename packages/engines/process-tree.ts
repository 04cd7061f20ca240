/**
 * Kills a server with everything it has forked, and knows who is alive.
 *
 * A process group is not enough: every PostgreSQL backend is the leader of its own. So the tree is found by parents.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** Dying takes the kernel milliseconds, also on a busy machine. Past this something is wrong that waiting won't mend. */
const deathMs = 10_000;

/** Resolves once none of them runs any more. */
export async function killTree(root: number): Promise<void> {
  const tree = await holdStill(root);
  for (const pid of tree) signal(pid, "SIGKILL");
  const deadline = Date.now() + deathMs;
  while (tree.some(isAlive)) {
    if (Date.now() > deadline) throw new Error(`processes ${tree.filter(isAlive).join(", ")} outlived a kill -9`);
    await delay(5);
  }
}

/** Stops every process of the tree, so that none can fork another while we look; returns them all. */
async function holdStill(root: number): Promise<number[]> {
  const held = new Set<number>([root]);
  signal(root, "SIGSTOP");
  for (let found = 1; found > 0; ) {
    const fresh = (await parents()).filter(([pid, parent]) => held.has(parent) && !held.has(pid));
    for (const [pid] of fresh) {
      signal(pid, "SIGSTOP");
      held.add(pid);
    }
    found = fresh.length;
  }
  return [...held];
}

/** A zombie is dead: in a container whose first process reaps nobody it may stay in the table for ever. */
export function isAlive(pid: number): boolean {
  const entry = process.platform === "linux" ? procEntry(pid) : undefined;
  if (entry !== undefined) return entry.state !== "Z" && entry.state !== "X";
  return signal(pid, 0);
}

/** False when there is no such process. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Every process of this machine with its parent. */
async function parents(): Promise<[pid: number, parent: number][]> {
  if (process.platform === "linux") {
    const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
    return pids.flatMap((pid) => {
      const entry = procEntry(pid);
      return entry ? [[pid, entry.parent] as [number, number]] : [];
    });
  }
  const { stdout } = await promisify(execFile)("ps", ["-axo", "pid=,ppid="]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
}

/** "71 (nats-server) S 70 …": the name may hold blanks and brackets of its own, so we read from its last bracket on. */
function procEntry(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
