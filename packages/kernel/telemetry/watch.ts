/**
 * Gauges: what the state is, read when somebody asks.
 *
 * However often and by however many they are asked for, the state is read at most every `everyMs`: to look at a system
 * must not load it. A reading that fails leaves a gap, and is told to `onError`.
 */
import type { Attributes, BatchObservableCallback, ObservableGauge } from "@opentelemetry/api";
import { instrumentOf, type Metric, type MetricCatalogue, meterOf, type NamesOf } from "./metrics.ts";

export interface Reading<Name extends string> {
  readonly name: Name;
  readonly value: number;
  readonly attributes?: Attributes;
}

export interface WatchOptions<C extends MetricCatalogue> {
  /** The package that watches. */
  readonly scope: string;
  readonly catalogue: C;
  readonly gauges: readonly NamesOf<C, "gauge">[];
  readonly read: () => readonly Reading<NamesOf<C, "gauge">>[] | Promise<readonly Reading<NamesOf<C, "gauge">>[]>;
  readonly everyMs?: number;
  readonly onError?: (error: unknown) => void;
}

// Less than the usual 10 or 15 s between two scrapes, so that each sees something new.
const usualEveryMs = 5_000;

/** Watches until disposed. */
export function watch<C extends MetricCatalogue>(options: WatchOptions<C>): AsyncDisposable {
  const { scope, catalogue, gauges, onError } = options;
  const meter = meterOf(scope);
  const instruments = new Map(
    gauges.map((name) => [name, instrumentOf(scope, name, catalogue[name] as Metric) as ObservableGauge]),
  );
  const readings = atMostEvery(options.everyMs ?? usualEveryMs, async () => options.read());
  const observe: BatchObservableCallback = async (result) => {
    try {
      for (const { name, value, attributes } of await readings()) {
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

/** Those who ask in between get the last answer, or wait for the one on its way. */
function atMostEvery<T>(everyMs: number, read: () => Promise<T>): () => Promise<T> {
  let last: Promise<T> | undefined;
  let readAt = 0;
  return () => {
    const now = performance.now();
    if (last === undefined || now - readAt >= everyMs) {
      last = read();
      readAt = now;
    }
    return last;
  };
}
