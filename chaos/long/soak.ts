/**
 * `npm run soak`: all services at 70 % of what this machine serves, without faults, for an hour (`--minutes n`). It measures memory,
 * open handles, latency, tables, indexes, WAL and backlog, and fails if one of them grows without bound.
 */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Counts } from "../client.ts";
import { startClients } from "../clients.ts";
import { createHarness, type Harness } from "../harness.ts";
import type { Line, Writer } from "../history.ts";
import { type Summary, toText } from "../report.ts";
import { saveEvidence, waitUntilQuiet } from "../run.ts";
import { readLongArguments } from "./arguments.ts";
import { measureLimit } from "./limit.ts";
import { measureDatabases, measureProcesses } from "./measure.ts";
import { type Judged, judge, type Point, percentile, ratesOf, type Series } from "./series.ts";

const share = 0.7;
const samplesMin = 20;
const sampleMsMax = 30_000;
const quietMs = 120_000;
const mb = 1_024 * 1_024;

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());

process.exit(await soak(process.argv.slice(2)));

interface Sample {
  /** Seconds since the start. */
  readonly at: number;
  readonly values: Readonly<Record<string, number>>;
}

async function soak(argv: readonly string[]): Promise<number> {
  const { minutes, bus, services, out } = readLongArguments(argv, 60);
  const forMs = minutes * 60_000;
  const folder = out ?? (await mkdtemp(join(tmpdir(), "todoke-soak-")));
  await using harness = await createHarness({ bus, folder, forMs, services });
  const limitMs = Math.min(30_000, forMs / 4);
  const { perSecond } = await measureLimit(harness, nowhere, limitMs);
  const rate = perSecond * share;
  console.log(`The services answer ${perSecond.toFixed(0)} commands/s; running at ${rate.toFixed(0)}/s (70 %).`);
  const startedAt = Date.now();
  const samples = await sampleUnderLoad(harness, rate, forMs);
  const stoppedAt = Date.now();
  const quietAt = await waitUntilQuiet(harness, quietMs);
  const observed = { seed: "soak", startedAt, stoppedAt, timed: false, faults: [], ...(quietAt && { quietAt }) };
  await saveEvidence(harness, folder, observed);
  const judged = toSeries(samples).map(judge);
  console.log(`\n${toText(toSummary(judged))}\n\nQuiet after the load: ${quietAt ? "yes" : "no"}. Evidence: ${folder}`);
  return quietAt !== undefined && judged.every(({ grows }) => !grows) ? 0 : 1;
}

/** The history of an hour is too large to keep. */
const nowhere: Writer<Line> = { write: () => {}, [Symbol.asyncDispose]: async () => {} };

async function sampleUnderLoad(harness: Harness, rate: number, forMs: number): Promise<Sample[]> {
  const counts: Counts = { commands: 0, answered: 0, requests: 0, unknown: 0 };
  let latencies: number[] = [];
  const history: Writer<Line> = {
    ...nowhere,
    write: (line) => void ("command" in line && line.end !== "unknown" && latencies.push(line.to - line.from)),
  };
  const ended = AbortSignal.any([stopping.signal, AbortSignal.timeout(forMs)]);
  const clients = startClients({ harness, seed: "soak", rate, history, counts, stopping: ended });
  const startedAt = performance.now();
  const samples: Sample[] = [];
  while (!ended.aborted) {
    await sleep(Math.min(sampleMsMax, forMs / samplesMin), undefined, { signal: ended }).catch(() => {});
    const { memoryMb, handles, largestMb } = measureProcesses(harness);
    const { tableBytes, indexBytes, walBytes, backlog } = await measureDatabases(harness);
    const times = latencies;
    latencies = [];
    const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
    const at = (performance.now() - startedAt) / 1_000;
    const values = { memoryMb, handles, largestMb, tableBytes, indexBytes, walBytes, backlog, p50, p99 };
    samples.push({ at, values: { ...values, answered: counts.answered } });
    console.log(`${at.toFixed(0)} s: ${counts.answered} answered, ${memoryMb.toFixed(0)} MB, p99 ${p99} ms`);
  }
  await Promise.all(clients);
  return samples;
}

/** Tables and WAL grow with the commands, so what has to be flat is bytes per command. */
function toSeries(samples: readonly Sample[]): Series[] {
  const of = (name: string): Point[] => samples.map(({ at, values }) => ({ at, value: values[name] ?? 0 }));
  const perCommand = (name: string) => ratesOf(of(name), of("answered"));
  return [
    { name: "memory of all processes", unit: "MB", noise: 100, points: of("memoryMb") },
    { name: "memory of the largest process", unit: "MB", noise: 40, points: of("largestMb") },
    { name: "open handles", unit: "", noise: 50, points: of("handles") },
    { name: "latency, p50", unit: "ms", noise: 20, points: of("p50") },
    { name: "latency, p99", unit: "ms", noise: 200, points: of("p99") },
    { name: "unfinished work", unit: "rows", noise: 1_000, points: of("backlog") },
    { name: "tables per command", unit: "bytes", noise: 500, points: perCommand("tableBytes") },
    { name: "indexes per command", unit: "bytes", noise: 500, points: perCommand("indexBytes") },
    { name: "WAL per command", unit: "bytes", noise: 2_000, points: perCommand("walBytes") },
    { name: "tables", unit: "MB", noise: Number.POSITIVE_INFINITY, points: inMb(of("tableBytes")) },
    { name: "indexes", unit: "MB", noise: Number.POSITIVE_INFINITY, points: inMb(of("indexBytes")) },
  ];
}

const inMb = (points: readonly Point[]): Point[] => points.map(({ at, value }) => ({ at, value: value / mb }));

const toSummary = (judged: readonly Judged[]): Summary => ({
  head: ["", "first", "last", "slope per hour", ""],
  rows: judged.map(({ series: { name, unit }, first, last, perHour, grows }) => [
    name,
    `${first.toFixed(0)} ${unit}`,
    `${last.toFixed(0)} ${unit}`,
    `${perHour.toFixed(0)} ${unit}`,
    grows ? "GROWS" : "",
  ]),
});
