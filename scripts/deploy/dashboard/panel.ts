/** A panel of the dashboard, a row of them, and the queries that panels share. */

type Unit = "reqps" | "ops" | "s" | "short" | "percentunit";

export interface Panel {
  readonly title: string;
  readonly description: string;
  readonly unit: Unit;
  /** Pairs of a PromQL expression and its legend. */
  readonly targets: readonly (readonly [expr: string, legend: string])[];
  /** From here on a value is bad: orange, then red. */
  readonly thresholds?: readonly [warn: number, bad: number];
  /** One number instead of a graph. */
  readonly stat?: true;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export const panel = (title: string, description: string, more: Omit<Panel, "title" | "description">): Panel => ({
  title,
  description,
  ...more,
});

export const rate = (series: string) => `rate(${series}[$__rate_interval])`;

/** The quantiles of a histogram, by labels. */
export const quantiles = (series: string, labels: readonly string[] = [], ps: readonly number[] = [0.5, 0.99]) =>
  ps.map((p): readonly [string, string] => [
    `histogram_quantile(${p}, sum by (${[...labels, "le"].join(", ")}) (${rate(`${series}_bucket`)}))`,
    [`p${p * 100}`, ...labels.map((label) => `{{${label}}}`)].join(" "),
  ]);

export const countBy = (
  series: string,
  labels: readonly string[],
  unit: Unit = "ops",
): Pick<Panel, "unit" | "targets"> => ({
  unit,
  targets: [[`sum by (${labels.join(", ")}) (${rate(series)})`, labels.map((label) => `{{${label}}}`).join(" ")]],
});

/** Every process of a service reads the same rows, so the largest value is the value. */
export const maxBy = (series: string, label: string): readonly [string, string] => [
  `max by (${label}) (${series})`,
  `{{${label}}}`,
];

export const requests = (matchers = "") => `http_server_request_duration_seconds_count{service=~"$service"${matchers}}`;
export const failedRequests = requests(', http_response_status_code=~"5.."');

/** Without a request the share is 0, not nothing: an empty panel looks like a broken one. */
export const shareOf = (bad: string, all: string) => `(sum(${rate(bad)}) or vector(0)) / (sum(${rate(all)}) > 0)`;
