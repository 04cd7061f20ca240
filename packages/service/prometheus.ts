/**
 * Metrics in Prometheus' text exposition format, with names by OpenTelemetry's rule.
 *
 * Names come from our catalogues; attribute values may come from anywhere and are escaped.
 */
import {
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
} from "@opentelemetry/sdk-metrics";
import type { Metric } from "@todoke/kernel/telemetry";

/** "http.server.request.duration" in seconds is http_server_request_duration_seconds. What a name says is not said twice. */
export function prometheusName(name: string, { kind, unit }: Pick<Metric, "kind" | "unit">): string {
  const fitted = fit(name);
  const base = unit === "s" && !fitted.endsWith("_seconds") ? `${fitted}_seconds` : fitted;
  return kind === "counter" && !base.endsWith("_total") ? `${base}_total` : base;
}

const fit = (name: string) => name.replace(/[^a-zA-Z0-9]+/g, "_").replace(/^(?=\d)/, "_");

export function prometheusText({ resourceMetrics }: Pick<CollectionResult, "resourceMetrics">): string {
  const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  return all.map(familyOf).join("");
}

function familyOf(metric: MetricData): string {
  const { name, unit, description } = metric.descriptor;
  const kind = kindOf(metric);
  if (kind === undefined) return "";
  const family = prometheusName(name, { kind, unit });
  const head = `# HELP ${family} ${escapeHelp(description)}\n# TYPE ${family} ${kind}\n`;
  const lines = metric.dataPoints.map((point) =>
    kind === "histogram"
      ? bucketsOf(family, point as DataPoint<Histogram>)
      : sample(family, point.attributes, point.value as number),
  );
  return head + lines.join("");
}

/** Undefined for what none of our catalogues makes: exponential histograms. */
function kindOf(metric: MetricData): Metric["kind"] | undefined {
  if (metric.dataPointType === DataPointType.HISTOGRAM) return "histogram";
  if (metric.dataPointType === DataPointType.GAUGE) return "gauge";
  if (metric.dataPointType === DataPointType.SUM) return metric.isMonotonic ? "counter" : "gauge";
  return undefined;
}

/** Each bucket counts all that is at or below its bound, so the last one is the number of all. */
function bucketsOf(family: string, { attributes, value }: DataPoint<Histogram>): string {
  const { boundaries, counts } = value.buckets;
  let below = 0;
  const buckets = boundaries.map((bound, place) => {
    below += counts[place] ?? 0;
    return sample(`${family}_bucket`, { ...attributes, le: String(bound) }, below);
  });
  return [
    ...buckets,
    sample(`${family}_bucket`, { ...attributes, le: "+Inf" }, value.count),
    sample(`${family}_sum`, attributes, value.sum ?? 0),
    sample(`${family}_count`, attributes, value.count),
  ].join("");
}

function sample(name: string, attributes: DataPoint<unknown>["attributes"], value: number): string {
  const labels = Object.entries(attributes).map(([key, text]) => `${fit(key)}="${escapeLabel(String(text))}"`);
  return `${name}${labels.length > 0 ? `{${labels.join(",")}}` : ""} ${numberText(value)}\n`;
}

/** As Prometheus spells what JavaScript calls Infinity. */
const numberText = (value: number) => String(value).replace("Infinity", "Inf");

const escapeHelp = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const escapeLabel = (text: string) => escapeHelp(text).replaceAll('"', '\\"');
