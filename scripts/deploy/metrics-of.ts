/** Metrics and labels in a PromQL expression. */

export interface MetricUse {
  readonly metric: string;
  readonly labels: readonly string[];
}

const keywords = new Set(["and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset"]);

export function metricsOf(expr: string): MetricUse[] {
  // Labels in a grouping clause are no metrics; groupingsOf reads them.
  const text = expr.replace(grouping, " ");
  return [...text.matchAll(/([a-zA-Z_:][\w:]*)(\s*\()?(?:\{([^}]*)\})?(?:\[[^\]]*\])?/g)].flatMap(
    ([, metric = "", call, labels = ""]) =>
      call || keywords.has(metric)
        ? []
        : [{ metric, labels: [...labels.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, name = ""]) => name) }],
  );
}

const grouping = /\b(?:by|without)\s*\(([^)]*)\)/g;

/** The labels that the expression groups by. */
export const groupingsOf = (expr: string): string[] =>
  [...expr.matchAll(grouping)].flatMap(([, labels = ""]) => labels.split(",").map((label) => label.trim()));
