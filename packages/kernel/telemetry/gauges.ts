/**
 * Gauges, read on scrape.
 *
 * However many scrapers there are, the values are read at most every `intervalMs`: observing a system must not load it. A failed
 * read leaves a gap and is reported to `onError`.
 */
import type { Attributes, BatchObservableCallback, ObservableGauge } from "@opentelemetry/api";
import { getInstrument, getMeter, type Metric, type MetricCatalogue, type MetricNames } from "./metrics.ts";

export interface GaugeValue<Name extends string> {
  readonly name: Name;
  readonly value: number;
  readonly attributes?: Attributes;
}

/** An entry of a catalogue. */
export const gauge = (unit: string, description: string, attributes: readonly string[] = []) =>
  ({ kind: "gauge", unit, description, attributes }) as const;

export interface ObserveGaugesOptions<C extends MetricCatalogue> {
  /** The name of the package that reports the gauges. */
  readonly scope: string;
  readonly catalogue: C;
  readonly gauges: readonly MetricNames<C, "gauge">[];
  readonly read: () =>
    | readonly GaugeValue<MetricNames<C, "gauge">>[]
    | Promise<readonly GaugeValue<MetricNames<C, "gauge">>[]>;
  readonly intervalMs?: number;
  readonly onError?: (error: unknown) => void;
}

// Less than the usual scrape interval of 10 or 15 s, so that every scrape reads new values.
const defaultIntervalMs = 5_000;

/** Reports gauges until disposed. */
export function observeGauges<C extends MetricCatalogue>(options: ObserveGaugesOptions<C>): AsyncDisposable {
  const { scope, catalogue, gauges, onError } = options;
  const meter = getMeter(scope);
  const instruments = new Map(
    gauges.map((name) => [name, getInstrument(scope, name, catalogue[name] as Metric) as ObservableGauge]),
  );
  const readThrottled = throttle(options.intervalMs ?? defaultIntervalMs, async () => options.read());
  const observe: BatchObservableCallback = async (result) => {
    try {
      for (const { name, value, attributes } of await readThrottled()) {
        const instrument = instruments.get(name);
        if (instrument) result.observe(instrument, value, attributes);
      }
    } catch (error) {
      onError?.(new Error(`reading ${gauges.join(", ")} failed`, { cause: error }));
    }
  };
  meter.addBatchObservableCallback(observe, [...instruments.values()]);
  return {
    async [Symbol.asyncDispose]() {
      meter.removeBatchObservableCallback(observe, [...instruments.values()]);
    },
  };
}

/** Calls in between get the last result, or wait for the one in flight. */
function throttle<T>(intervalMs: number, read: () => Promise<T>): () => Promise<T> {
  let last: Promise<T> | undefined;
  let readAt = 0;
  return () => {
    const now = performance.now();
    if (last === undefined || now - readAt >= intervalMs) {
      last = read();
      readAt = now;
    }
    return last;
  };
}
