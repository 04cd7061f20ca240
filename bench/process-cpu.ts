/** CPU time of processes that the bench did not start itself, from /proc (Linux). */
import { readdir, readFile } from "node:fs/promises";
import type { Db } from "@todoke/kernel/db";

/** Linux reports CPU time in hundredths of a second on every architecture that Node supports. */
const microsecondsPerTick = 10_000;

interface ProcessTimes {
  readonly parent: number;
  /** User and system time, in ticks. */
  readonly own: number;
  /** The same of children that have exited. */
  readonly exitedChildren: number;
}

/** CPU time of one process in microseconds. */
export async function processCpuMicroseconds(pid: number): Promise<number> {
  return ((await readTimes(pid))?.own ?? 0) * microsecondsPerTick;
}

export async function parentOf(pid: number): Promise<number> {
  const times = await readTimes(pid);
  if (!times) throw new Error(`there is no process ${pid} on this machine`);
  return times.parent;
}

/** The parent of every server process. The server is on this machine. */
export async function findPostmaster(db: Db): Promise<number> {
  const { rows } = await db.query<{ pid: number }>(`select pg_backend_pid() as pid`);
  return await parentOf(rows[0]?.pid ?? 0);
}

/** CPU time of a process and its children in microseconds, also of those that have exited. */
export async function familyCpuMicroseconds(pid: number): Promise<number> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const all = await Promise.all(pids.map(async (each) => [each, await readTimes(each)] as const));
  let ticks = 0;
  for (const [each, times] of all) {
    if (each === pid) ticks += (times?.own ?? 0) + (times?.exitedChildren ?? 0);
    else if (times?.parent === pid) ticks += times.own;
  }
  return ticks * microsecondsPerTick;
}

/** "71 (postgres) S 70 …": the name may contain blanks and brackets, so we read from the last bracket on. */
async function readTimes(pid: number): Promise<ProcessTimes | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const number = (index: number) => Number(fields[index]);
  return { parent: number(1), own: number(11) + number(12), exitedChildren: number(13) + number(14) };
}
