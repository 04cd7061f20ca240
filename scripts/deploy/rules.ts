/** The rules and the rule tests of deploy/prometheus. */
import { parse } from "yaml";

export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export function readRules(yaml: string): Rule[] {
  const { groups }: { groups: { rules: Rule[] }[] } = parse(yaml);
  return groups.flatMap(({ rules }) => rules);
}

/** Which alerts the rule tests see fire, and which they see not fire. */
export interface TestedAlerts {
  readonly firing: ReadonlySet<string>;
  readonly silent: ReadonlySet<string>;
}

interface RuleTests {
  readonly tests: {
    readonly promql_expr_test?: {
      readonly expr: string;
      readonly exp_samples?: readonly { readonly labels: string }[];
    }[];
  }[];
}

/**
 * A test lists the alerts that it is about in its expression, `ALERTS{alertname=~"…"}`. Those of its samples fire, the others do not.
 */
export function readTestedAlerts(yaml: string): TestedAlerts {
  const { tests }: RuleTests = parse(yaml);
  const [firing, silent] = [new Set<string>(), new Set<string>()];
  for (const { expr, exp_samples: samples = [] } of tests.flatMap((test) => test.promql_expr_test ?? [])) {
    const about = /ALERTS\{alertname=~?"([^"]+)"/.exec(expr)?.[1]?.split("|") ?? [];
    const fires = new Set(samples.map(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1]));
    for (const alert of about) (fires.has(alert) ? firing : silent).add(alert);
  }
  return { firing, silent };
}
