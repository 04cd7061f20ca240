/**
 * Counts and measures by catalogue name, for the kernel and for whoever has a catalogue of its own. Instruments are made
 * on first use, when the program has set up its SDK.
 */
import {
  type Attributes,
  type Histogram,
  type Meter,
  metrics,
  type ObservableCallback,
  type ObservableGauge,
} from "@opentelemetry/api";
import { metricCatalogue } from "./names.ts";

export interface Metric {
  /** A gauge is asked for its value: see watch.ts. */
  readonly kind: "counter" | "histogram" | "gauge";
  /** UCUM: "s", or what is counted in braces: "{event}". */
  readonly unit: string;
  readonly description: string;
  readonly attributes: readonly string[];
}

export type MetricCatalogue = Readonly<Record<string, Metric>>;

/** The names in a catalogue of one kind: what is a counter cannot be observed, nor the other way round. */
export type NamesOf<C extends MetricCatalogue, Kind extends Metric["kind"]> = {
  [Name in keyof C]: C[Name]["kind"] extends Kind ? Name : never;
}[keyof C] &
  string;

// From 5 ms, which a command takes, to 5 minutes, for which an event may wait; 250 ms and 1 s are objectives (docs/slo.md).
const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/**
 * A counter's sums by attributes. The SDK asks for them when it collects, so that to count costs an addition: an SDK's
 * own counter sorts and prints the attributes every time.
 */
class Sums {
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

const madeBy = new WeakMap<object, Map<string, Instrument>>();

export const meterOf = (scope: string): Meter => metrics.getMeterProvider().getMeter(scope);

/** The same instrument at every call, and another one when the program has set up another SDK. */
export function instrumentOf(scope: string, name: string, metric: Metric): Instrument {
  const provider = metrics.getMeterProvider();
  const made = madeBy.get(provider) ?? new Map<string, Instrument>();
  const known = made.get(name);
  if (known) return known;
  const fresh = make(provider.getMeter(scope), name, metric);
  madeBy.set(provider, made.set(name, fresh));
  return fresh;
}

function make(meter: Meter, name: string, { kind, unit, description, attributes }: Metric): Instrument {
  switch (kind) {
    case "counter": {
      const sums = new Sums(attributes);
      meter.createObservableCounter(name, { unit, description }).addCallback(sums.observe);
      return sums;
    }
    case "gauge":
      return meter.createObservableGauge(name, { unit, description });
    case "histogram": {
      const advice = unit === "s" ? { advice: { explicitBucketBoundaries: secondsBuckets } } : {};
      return meter.createHistogram(name, { unit, description, ...advice });
    }
  }
}

/** Ways to count and measure what a catalogue names. `scope` is the package that does. */
export function metersOf<C extends MetricCatalogue>(scope: string, catalogue: C) {
  const instrument = (name: string) => instrumentOf(scope, name, catalogue[name] as Metric);

  function observeValue(name: NamesOf<C, "histogram">, value: number, attributes: Attributes): void {
    (instrument(name) as Histogram).record(value, attributes);
  }

  return {
    count(name: NamesOf<C, "counter">, attributes: Attributes, by = 1): void {
      if (by > 0) (instrument(name) as Sums).add(by, attributes);
    },
    observeValue,
    /** `sinceMs` is a reading of performance.now(). */
    observeDuration(name: NamesOf<C, "histogram">, sinceMs: number, attributes: Attributes): void {
      observeValue(name, (performance.now() - sinceMs) / 1_000, attributes);
    },
  };
}

export const { count, observeValue, observeDuration } = metersOf("@todoke/kernel", metricCatalogue);
