import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { expect, test } from "vitest";
import { prometheusName, prometheusText } from "./prometheus.ts";

class Pulled extends MetricReader {
  protected async onForceFlush() {}
  protected async onShutdown() {}
}

function setup() {
  const reader = new Pulled();
  const resource = resourceFromAttributes({ "service.version": "1.2.3" });
  const meter = new MeterProvider({ readers: [reader] }).getMeter("test");
  const collect = async () => (await reader.collect()).resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  return { meter, text: async () => prometheusText(await collect(), resource) };
}

test("names follow OpenTelemetry's rule for Prometheus", () => {
  expect(prometheusName("todoke.worker.jobs", { kind: "counter", unit: "{job}" })).toBe("todoke_worker_jobs_total");
  expect(prometheusName("entitlement.command.total", { kind: "counter", unit: "{command}" })).toBe(
    "entitlement_command_total",
  );
  expect(prometheusName("http.server.request.duration", { kind: "histogram", unit: "s" })).toBe(
    "http_server_request_duration_seconds",
  );
  expect(prometheusName("outbox.age_seconds", { kind: "histogram", unit: "s" })).toBe("outbox_age_seconds");
  expect(prometheusName("db.client.connection.pending_requests", { kind: "gauge", unit: "{request}" })).toBe(
    "db_client_connection_pending_requests",
  );
});

test("counters, gauges and histograms are written in the text exposition format", async () => {
  const { meter, text } = setup();
  meter.createCounter("jobs", { description: "Jobs\nof all \\ kinds" }).add(3, { "what.for": 'a"b\\c\nd' });
  meter.createObservableGauge("age", { unit: "s" }).addCallback((result) => result.observe(Number.POSITIVE_INFINITY));
  const histogram = meter.createHistogram("took", { unit: "s", advice: { explicitBucketBoundaries: [0.1, 1] } });
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.record(value, { route: "/x" });

  expect(await text()).toBe(`# HELP target_info Target metadata
# TYPE target_info gauge
target_info{service_version="1.2.3"} 1
# HELP jobs_total Jobs\\nof all \\\\ kinds
# TYPE jobs_total counter
jobs_total{what_for="a\\"b\\\\c\\nd"} 3
# HELP age_seconds description missing
# TYPE age_seconds gauge
age_seconds +Inf
# HELP took_seconds description missing
# TYPE took_seconds histogram
took_seconds_count{route="/x"} 4
took_seconds_sum{route="/x"} 7.65
took_seconds_bucket{route="/x",le="0.1"} 2
took_seconds_bucket{route="/x",le="1"} 3
took_seconds_bucket{route="/x",le="+Inf"} 4
`);
});
