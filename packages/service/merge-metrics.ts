/**
 * Adds up the metrics of several processes. Counters and histograms are sums. So are gauges of what each process has for itself,
 * such as its connections: they are recorded as up-down counters. Any other gauge is read from the database that all share,
 * or is a delay, so the largest counts.
 */
import { DataPointType, type Histogram, type MetricData } from "@opentelemetry/sdk-metrics";

export function mergeMetrics(processes: readonly (readonly MetricData[])[]): readonly MetricData[] {
  const merged = new Map<string, MetricData>();
  for (const metric of processes.flat()) {
    const { name } = metric.descriptor;
    const other = merged.get(name);
    merged.set(name, other?.dataPointType === metric.dataPointType ? mergeMetric(other, metric) : metric);
  }
  return [...merged.values()];
}

/** The counters of a process that has exited: without them, sums would fall, and a scraper would count the rest again. */
export const onlyTotals = (metrics: readonly MetricData[]): readonly MetricData[] =>
  metrics.filter(
    (metric) => metric.dataPointType !== DataPointType.GAUGE && !("isMonotonic" in metric && !metric.isMonotonic),
  );

const add = (a: number, b: number): number => a + b;
const larger = (a: number, b: number): number => Math.max(a, b);

function mergeMetric(a: MetricData, b: MetricData): MetricData {
  if (a.dataPointType === DataPointType.HISTOGRAM && b.dataPointType === DataPointType.HISTOGRAM)
    return { ...a, dataPoints: mergePoints(a.dataPoints, b.dataPoints, addHistograms) };
  if (a.dataPointType === DataPointType.SUM && b.dataPointType === DataPointType.SUM)
    return { ...a, dataPoints: mergePoints(a.dataPoints, b.dataPoints, add) };
  if (a.dataPointType === DataPointType.GAUGE && b.dataPointType === DataPointType.GAUGE)
    return { ...a, dataPoints: mergePoints(a.dataPoints, b.dataPoints, larger) };
  return a;
}

interface Point<Value> {
  readonly attributes: object;
  readonly value: Value;
}

function mergePoints<Value, P extends Point<Value>>(
  a: readonly P[],
  b: readonly P[],
  merge: (x: Value, y: Value) => Value,
): P[] {
  const merged = new Map<string, P>();
  for (const point of [...a, ...b]) {
    const key = JSON.stringify(Object.entries(point.attributes).sort(([x], [y]) => (x < y ? -1 : 1)));
    const other = merged.get(key);
    merged.set(key, other ? { ...point, value: merge(other.value, point.value) } : point);
  }
  return [...merged.values()];
}

/** The buckets are the same in all processes, because they run the same build. */
function addHistograms(a: Histogram, b: Histogram): Histogram {
  const { boundaries, counts } = a.buckets;
  return {
    buckets: { boundaries, counts: counts.map((count, index) => count + (b.buckets.counts[index] ?? 0)) },
    count: a.count + b.count,
    sum: (a.sum ?? 0) + (b.sum ?? 0),
  };
}
