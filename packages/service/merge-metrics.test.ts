import { emptyResource } from "@opentelemetry/resources";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { expect, test } from "vitest";
import { mergeMetrics, onlyTotals } from "./merge-metrics.ts";
import { prometheusText } from "./prometheus.ts";

class Pulled extends MetricReader {
  protected async onForceFlush() {}
  protected async onShutdown() {}
}

/** The metrics of a process that has counted `n` of everything. */
async function processWith(n: number) {
  const reader = new Pulled();
  const meter = new MeterProvider({ readers: [reader] }).getMeter("test");
  meter.createCounter("jobs").add(n, { worker: "relay", outcome: "done" });
  meter.createCounter("jobs").add(1, { worker: `only-${n}` });
  meter.createObservableUpDownCounter("connections").addCallback((result) => result.observe(n));
  meter.createObservableGauge("backlog").addCallback((result) => result.observe(n));
  meter.createHistogram("took", { advice: { explicitBucketBoundaries: [2, 4] } }).record(n);
  return (await reader.collect()).resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
}

const samples = (text: string) => text.split("\n").filter((line) => line !== "" && !/^(#|target_info)/.test(line));

test("counters, histograms and what each process has for itself are added; of other gauges the largest counts", async () => {
  const merged = mergeMetrics([await processWith(1), await processWith(3)]);
  // As they arrive from another process.
  expect(samples(prometheusText(structuredClone(merged), emptyResource()))).toEqual([
    'jobs_total{worker="relay",outcome="done"} 4',
    'jobs_total{worker="only-1"} 1',
    'jobs_total{worker="only-3"} 1',
    "connections 4",
    "backlog 3",
    "took_count 2",
    "took_sum 4",
    'took_bucket{le="2"} 1',
    'took_bucket{le="4"} 2',
    'took_bucket{le="+Inf"} 2',
  ]);
});

test("only totals are kept of a process that is gone", async () => {
  const totals = onlyTotals(await processWith(2));
  expect(totals.map(({ descriptor }) => descriptor.name)).toEqual(["jobs", "took"]);
});
