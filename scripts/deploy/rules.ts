/** Reads deploy/prometheus/rules.yaml in the form that we write; a line in another form is an error. */

export interface Rule {
  readonly group: string;
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly severity?: string;
  readonly window?: string;
  readonly summary?: string;
  readonly runbook?: string;
}

const forms = {
  nothing: /^(#.*|groups:|\s+(rules|labels|annotations):|\s+expr: \|)?$/,
  group: /^ {2}- name: ([a-z-]+)$/,
  rule: /^ {6}- (alert|record): ([A-Za-z_:0-9]+)$/,
  value: /^ {8,10}(for|severity|window|summary|runbook): (?:"([^"\\]+)"|([a-z0-9]+))$/,
  expr: /^ {10}(\S.*|\s{2}\S.*)$/,
};

export function readRules(yaml: string): Rule[] {
  const rules: Record<string, string>[] = [];
  let group = "";
  let inExpr = false;
  for (const [index, line] of yaml.split("\n").entries()) {
    const value = forms.value.exec(line);
    const expr: RegExpExecArray | null = inExpr && !value ? forms.expr.exec(line) : null;
    const rule = rules.at(-1);
    if (expr && rule) rule.expr = `${rule.expr ?? ""}${expr[1]}\n`;
    else if (forms.group.test(line)) group = forms.group.exec(line)?.[1] ?? "";
    else if (forms.rule.test(line)) {
      const [, kind = "", name = ""] = forms.rule.exec(line) ?? [];
      rules.push({ group, [kind]: name });
    } else if (value && rule) rule[value[1] ?? ""] = value[2] ?? value[3] ?? "";
    else if (!forms.nothing.test(line)) throw new Error(`line ${index + 1} cannot be read: ${line}`);
    inExpr = line.trim() === "expr: |" || expr !== null;
  }
  return rules as unknown as Rule[];
}
