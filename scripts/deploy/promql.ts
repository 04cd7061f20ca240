/** What a PromQL expression reads, by the grammar of Prometheus' own editor. */
import { parser } from "@prometheus-io/lezer-promql";

interface Selector {
  /** A name, or the regular expression that `__name__` must match. */
  readonly metric: string | RegExp;
  readonly labels: readonly string[];
}

export interface PromQl {
  readonly selectors: readonly Selector[];
  /** The labels that the expression groups by. */
  readonly groupings: readonly string[];
}

/** Throws if the expression cannot be parsed. */
export function parsePromQl(expr: string): PromQl {
  const selectors: { metric: string | RegExp; labels: string[] }[] = [];
  const groupings: string[] = [];
  let matched = "";
  parser.parse(expr).iterate({
    enter({ type, name, from, to, node }) {
      const text = expr.slice(from, to);
      const selector = selectors.at(-1);
      if (type.isError) throw new Error(`PromQL cannot be parsed at character ${from + 1}: ${expr}`);
      if (name === "VectorSelector") selectors.push({ metric: "", labels: [] });
      else if (name === "Identifier" && selector) selector.metric = text;
      else if (name === "LabelName" && node.parent?.name === "GroupingLabels") groupings.push(text);
      else if (name === "LabelName") matched = text;
      else if (name === "StringLiteral" && selector && matched === "__name__")
        selector.metric = new RegExp(`^(?:${text.slice(1, -1)})$`);
      else if (name === "StringLiteral" && selector && matched !== "") selector.labels.push(matched);
      if (name === "StringLiteral") matched = "";
    },
  });
  return { selectors, groupings };
}
