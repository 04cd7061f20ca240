/** Metrics in Prometheus' text exposition format, by OpenTelemetry's serializer. */
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import type { Resource } from "@opentelemetry/resources";
import { DataPointType, type MetricData } from "@opentelemetry/sdk-metrics";
import type { Metric } from "@todoke/kernel/telemetry";

/** "http.server.request.duration" in seconds is http_server_request_duration_seconds. No suffix is repeated. */
export function prometheusName(name: string, { kind, unit }: Pick<Metric, "kind" | "unit">): string {
  const fitted = name.replace(/[^a-zA-Z0-9]+/g, "_");
  const base = unit === "s" && !fitted.endsWith("_seconds") ? `${fitted}_seconds` : fitted;
  return kind === "counter" && !base.endsWith("_total") ? `${base}_total` : base;
}

// target_info has the version of the process. No label has the scope: the scrape's own labels name the process.
const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);

export function prometheusText(metrics: readonly MetricData[], resource: Resource): string {
  const scopeMetrics = [{ scope: { name: "" }, metrics: metrics.map(withSuffix) }];
  return serializer.serialize({ resource, scopeMetrics });
}

/** The serializer adds no suffix for the unit, and writes "{event}" as a unit that Prometheus does not know. */
function withSuffix(metric: MetricData): MetricData {
  const { name, unit } = metric.descriptor;
  const isCounter = metric.dataPointType === DataPointType.SUM && metric.isMonotonic;
  const named = prometheusName(name, { kind: isCounter ? "counter" : "gauge", unit });
  return { ...metric, descriptor: { ...metric.descriptor, name: named, unit: "" } };
}
