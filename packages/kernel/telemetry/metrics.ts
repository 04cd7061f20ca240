/** Counts and measures by catalogue name. Instruments are made on first use, when the program has set up its SDK. */
import { type Attributes, type Counter, type Histogram, metrics } from "@opentelemetry/api";
import { type MetricName, metricCatalogue } from "./names.ts";

const instruments = new WeakMap<object, Map<MetricName, Counter | Histogram>>();

function instrument(name: MetricName): Counter | Histogram {
  const provider = metrics.getMeterProvider();
  const made = instruments.get(provider) ?? new Map<MetricName, Counter | Histogram>();
  instruments.set(provider, made);
  const known = made.get(name);
  if (known) return known;
  const meter = provider.getMeter("@todoke/kernel");
  const { kind, unit, description } = metricCatalogue[name];
  const fresh =
    kind === "counter"
      ? meter.createCounter(name, { unit, description })
      : meter.createHistogram(name, { unit, description });
  made.set(name, fresh);
  return fresh;
}

export function count(name: MetricName, attributes: Attributes, by = 1): void {
  if (by > 0) (instrument(name) as Counter).add(by, attributes);
}

export function observeValue(name: MetricName, value: number, attributes: Attributes): void {
  (instrument(name) as Histogram).record(value, attributes);
}

/** `sinceMs` is a reading of performance.now(). */
export function observeDuration(name: MetricName, sinceMs: number, attributes: Attributes): void {
  observeValue(name, (performance.now() - sinceMs) / 1_000, attributes);
}
