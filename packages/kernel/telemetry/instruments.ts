/** The instruments behind the names of a catalogue, created on first use, when the program has set up its SDK. */
import {
  type Attributes,
  type Histogram,
  type Meter,
  metrics,
  type ObservableCallback,
  type ObservableGauge,
} from "@opentelemetry/api";
import type { Metric } from "./catalogue.ts";

// From the 5 ms of a command to the 5 minutes that an event may wait; 250 ms and 1 s are objectives (docs/slo.md).
const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/**
 * A counter's sums by attributes. The SDK reads them when it collects, so counting costs an addition; the SDK's own counter
 * sorts and serializes the attributes every time.
 */
export class Sums {
  readonly #attributes: readonly string[];
  readonly #byKey = new Map<string, { readonly attributes: Attributes; value: number }>();

  constructor(attributes: readonly string[]) {
    this.#attributes = attributes;
  }

  add(by: number, attributes: Attributes): void {
    let key = "";
    for (const name of this.#attributes) key += `${attributes[name]}\n`;
    const sum = this.#byKey.get(key);
    if (sum) sum.value += by;
    else this.#byKey.set(key, { attributes, value: by });
  }

  readonly observe: ObservableCallback = (result) => {
    for (const { attributes, value } of this.#byKey.values()) result.observe(value, attributes);
  };
}

type Instrument = Sums | Histogram | ObservableGauge;

const instrumentsByProvider = new WeakMap<object, Map<string, Instrument>>();

export const getMeter = (scope: string): Meter => metrics.getMeterProvider().getMeter(scope);

/** Creates an instrument once per SDK. */
export function getInstrument(scope: string, name: string, metric: Metric): Instrument {
  const provider = metrics.getMeterProvider();
  const instruments = instrumentsByProvider.get(provider) ?? new Map<string, Instrument>();
  const existing = instruments.get(name);
  if (existing) return existing;
  const created = create(provider.getMeter(scope), name, metric);
  instrumentsByProvider.set(provider, instruments.set(name, created));
  return created;
}

function create(meter: Meter, name: string, { kind, unit, description, attributes, adds }: Metric): Instrument {
  switch (kind) {
    case "counter": {
      const sums = new Sums(attributes);
      meter.createObservableCounter(name, { unit, description }).addCallback(sums.observe);
      return sums;
    }
    case "gauge":
      return adds
        ? meter.createObservableUpDownCounter(name, { unit, description })
        : meter.createObservableGauge(name, { unit, description });
    case "histogram": {
      const advice = unit === "s" ? { advice: { explicitBucketBoundaries: secondsBuckets } } : {};
      return meter.createHistogram(name, { unit, description, ...advice });
    }
  }
}
