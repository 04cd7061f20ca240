/** Metrics by name, declared once: `"points.backlog.age": gauge("s", "Age of the oldest due row")`. */

export interface Metric {
  readonly kind: "counter" | "histogram" | "gauge";
  /** UCUM: "s", or the counted thing in braces: "{event}". */
  readonly unit: string;
  readonly description: string;
  readonly attributes: readonly string[];
  /** A gauge of what each process has for itself: the values of several processes are added. */
  readonly adds?: boolean;
}

export type MetricCatalogue = Readonly<Record<string, Metric>>;

/** The names of one kind in a catalogue, so that a counter cannot be observed and a histogram cannot be counted. */
export type MetricNames<C extends MetricCatalogue, Kind extends Metric["kind"]> = {
  [Name in keyof C]: C[Name]["kind"] extends Kind ? Name : never;
}[keyof C] &
  string;

const metric =
  <Kind extends Metric["kind"]>(kind: Kind) =>
  (unit: string, description: string, attributes: readonly string[] = []) => ({ kind, unit, description, attributes });

export const counter = metric("counter");
export const histogram = metric("histogram");
export const gauge = metric("gauge");
/** A gauge of what each process has for itself, such as its connections. The values of several processes are added. */
export const processGauge = (unit: string, description: string, attributes: readonly string[] = []) => ({
  ...gauge(unit, description, attributes),
  adds: true,
});
