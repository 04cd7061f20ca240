import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { httpMigrations } from "@todoke/http";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { outboxDeadLetters } from "@todoke/kernel/outbox";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { selectSamples } from "./sample-store.ts";
import { createSampler } from "./sampler.ts";

class Reader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

test("a sample has the requests of this service since the one before, and the gauges as they are", async () => {
  await using t = await testDatabase({ sets: [kernelMigrations, httpMigrations] });
  const reader = new Reader();
  const meter = new MeterProvider({ readers: [reader] }).getMeter("test");
  const duration = meter.createHistogram("http.server.request.duration", {
    advice: { explicitBucketBoundaries: [0.01, 0.1] },
  });
  meter.createObservableGauge("shop.outbox.backlog").addCallback((on) => {
    on.observe(3, { status: "pending" });
    on.observe(1, { status: "in_flight" });
  });
  meter.createObservableGauge("shop.outbox.backlog.age").addCallback((on) => on.observe(7));
  meter.createObservableGauge("depot.outbox.backlog.age").addCallback((on) => on.observe(99));
  const collect = async () => {
    const { resourceMetrics } = await reader.collect();
    return resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  };
  const served = (service: string, seconds: number, status = 200) =>
    duration.record(seconds, { service, "http.route": "/", "http.response.status_code": status });
  const sample = createSampler({
    service: "shop",
    db: t.db,
    deadLetters: [outboxDeadLetters],
    hasGauges: true,
    collect,
  });

  served("shop", 0.001);
  await sample();
  expect(await selectSamples(t.db)).toEqual([]);
  served("shop", 0.05);
  served("shop", 5, 503);
  served("depot", 0.05, 500);
  await sample();
  expect((await selectSamples(t.db)).map((row) => row.sample)).toEqual([
    { requests: 2, errors: 1, boundaries: [0.01, 0.1], counts: [0, 1, 1], backlog: 4, oldest_age_s: 7, dead: 0 },
  ]);
});
