/** Counters, histograms and gauges by catalogue name, for the kernel and for services with catalogues of their own. */
import type { Attributes, Histogram } from "@opentelemetry/api";
import type { Metric, MetricCatalogue, MetricNames } from "./catalogue.ts";
import { type GaugesOptions, reportGauges } from "./gauges.ts";
import { getInstrument, type Sums } from "./instruments.ts";
import { metricCatalogue } from "./names.ts";

/** Functions that count and observe the metrics of a catalogue. `scope` is the name of the package. */
export function createMeters<C extends MetricCatalogue>(scope: string, catalogue: C) {
  const instrument = (name: string) => getInstrument(scope, name, catalogue[name] as Metric);

  function observeValue(name: MetricNames<C, "histogram">, value: number, attributes: Attributes): void {
    (instrument(name) as Histogram).record(value, attributes);
  }

  return {
    count(name: MetricNames<C, "counter">, attributes: Attributes, by = 1): void {
      if (by > 0) (instrument(name) as Sums).add(by, attributes);
    },
    observeValue,
    /** `sinceMs` is a value of performance.now(). */
    observeDuration(name: MetricNames<C, "histogram">, sinceMs: number, attributes: Attributes): void {
      observeValue(name, (performance.now() - sinceMs) / 1_000, attributes);
    },
    /** Reports gauges until disposed. */
    observeGauges: (options: GaugesOptions<C>): AsyncDisposable => reportGauges(scope, catalogue, options),
  };
}

export const { count, observeValue, observeDuration, observeGauges } = createMeters("@todoke/kernel", metricCatalogue);
