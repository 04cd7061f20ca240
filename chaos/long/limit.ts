/** Measures what the services of a run can serve, with clients that send the next command as soon as one is answered. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Counts } from "../client.ts";
import { startClients } from "../clients.ts";
import type { Harness } from "../harness.ts";
import type { Line, Writer } from "../history.ts";
import { measureProcesses } from "./measure.ts";

export interface Limit {
  /** Commands per second that were answered. */
  readonly perSecond: number;
  /** CPU time of the services per command. */
  readonly cpuMs: number;
}

/** More than any machine serves: the clients then never pause. */
const unlimited = 1_000_000;

export async function measureLimit(harness: Harness, history: Writer<Line>, forMs: number): Promise<Limit> {
  const counts: Counts = { commands: 0, answered: 0, requests: 0, unknown: 0 };
  const stopping = new AbortController();
  const startedAt = performance.now();
  const before = measureProcesses(harness);
  const clients = startClients({ harness, seed: "limit", rate: unlimited, history, counts, stopping: stopping.signal });
  await sleep(forMs);
  stopping.abort();
  await Promise.all(clients);
  const seconds = (performance.now() - startedAt) / 1_000;
  const answered = Math.max(1, counts.answered);
  return { perSecond: answered / seconds, cpuMs: (measureProcesses(harness).cpuMs - before.cpuMs) / answered };
}
