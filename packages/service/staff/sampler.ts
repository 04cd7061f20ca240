/** Stores the figures of this process once a minute, from its own metrics. */
import { hostname } from "node:os";
import { DataPointType, type Histogram, type MetricData } from "@opentelemetry/sdk-metrics";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { type Loop, startLoop } from "@todoke/kernel/worker";
import { insertSample, type Sample } from "./sample-store.ts";
import { countMax } from "./start-dead-letter-batch.ts";

export interface SamplerOptions {
  readonly service: string;
  readonly db: Db;
  readonly deadLetters: readonly DeadLetters[];
  /** Whether this process has the gauges of the service, which read its database. */
  readonly hasGauges: boolean;
  readonly collect: () => Promise<readonly MetricData[]>;
  readonly onError: (error: unknown) => void;
}

const minuteMs = 60_000;

export function startSampler({ onError, ...options }: SamplerOptions): Loop {
  const takeSample = createSampler(options);
  return startLoop(
    (_stopping, nextIn) => {
      // Just after a minute has ended, so that all processes sample the same minutes.
      nextIn(minuteMs - (Date.now() % minuteMs) + 100);
      return takeSample();
    },
    { intervalMs: minuteMs, task: "sampling for the console", onError },
  );
}

/** Each call stores the difference to the previous call; the first stores nothing. */
export function createSampler({ service, db, deadLetters, hasGauges, collect }: Omit<SamplerOptions, "onError">) {
  let before: Requests | undefined;
  return async (): Promise<void> => {
    const metrics = await collect();
    const requests = readRequests(metrics, service);
    if (before) {
      const dead = hasGauges ? await countDead(db, deadLetters) : null;
      await insertSample(db, `${hostname()}:${process.pid}`, toSample(before, requests, { metrics, service, dead }));
    }
    before = requests;
  };
}

async function countDead(db: Db, deadLetters: readonly DeadLetters[]): Promise<number> {
  let dead = 0;
  for (const each of deadLetters) dead += await each.count(db, countMax);
  return dead;
}

/** Totals since the process started. */
interface Requests {
  readonly requests: number;
  readonly errors: number;
  readonly boundaries: readonly number[];
  readonly counts: readonly number[];
}

function readRequests(metrics: readonly MetricData[], service: string): Requests {
  let [requests, errors] = [0, 0];
  let boundaries: readonly number[] = [];
  let counts: readonly number[] = [];
  for (const { attributes, value } of histogramPoints(metrics, "http.server.request.duration")) {
    if (attributes.service !== service) continue;
    requests += value.count;
    if (Number(attributes["http.response.status_code"]) >= 500) errors += value.count;
    boundaries = value.buckets.boundaries;
    counts = value.buckets.counts.map((count, index) => count + (counts[index] ?? 0));
  }
  return { requests, errors, boundaries, counts };
}

function histogramPoints(metrics: readonly MetricData[], name: string) {
  return metrics.flatMap((metric) =>
    metric.descriptor.name === name && metric.dataPointType === DataPointType.HISTOGRAM
      ? (metric.dataPoints as readonly { attributes: Readonly<Record<string, unknown>>; value: Histogram }[])
      : [],
  );
}

interface Gauges {
  readonly metrics: readonly MetricData[];
  readonly service: string;
  readonly dead: number | null;
}

function toSample(before: Requests, now: Requests, { metrics, service, dead }: Gauges): Sample {
  const backlogs = gaugeValues(
    metrics,
    (name) => name.startsWith(`${service}.`) && /\.backlog(\.current)?$/.test(name),
  );
  const ages = gaugeValues(metrics, (name) => name.startsWith(`${service}.`) && name.endsWith(".backlog.age"));
  return {
    requests: now.requests - before.requests,
    errors: now.errors - before.errors,
    boundaries: now.boundaries,
    counts: now.counts.map((count, index) => count - (before.counts[index] ?? 0)),
    backlog: backlogs.length > 0 ? backlogs.reduce((sum, value) => sum + value, 0) : null,
    oldest_age_s: ages.length > 0 ? Math.max(...ages) : null,
    dead,
  };
}

function gaugeValues(metrics: readonly MetricData[], isWanted: (name: string) => boolean): number[] {
  return metrics.flatMap((metric) =>
    metric.dataPointType === DataPointType.GAUGE && isWanted(metric.descriptor.name)
      ? metric.dataPoints.map(({ value }) => value)
      : [],
  );
}
