/** The findings of audits for a terminal. Their texts are untrusted, so control characters are replaced. */
import { type Audit, type AuditFinding, perRuleMax } from "@todoke/kernel/audit";
import { oneLine, styled } from "../output.ts";

export interface NamedAudit extends Audit {
  /** A service, or "events" or "sessions" for the rules between services. */
  readonly of: string;
}

export function formatAudit({ of, checked, rules, findings }: NamedAudit): string {
  const counts = Object.entries(checked).map(([noun, count]) => `${count} ${count === 1 ? singular(noun) : noun}`);
  const ofRule = (rule: string) => findings.filter((finding) => finding.rule === rule);
  const broken = rules.filter((rule) => ofRule(rule).length > 0);
  return [
    `${of}: checked ${counts.join(", ") || "nothing"}`,
    ...rules.flatMap((rule) => formatRule(rule, ofRule(rule))),
    broken.length === 0
      ? `All rules hold (${rules.length}).`
      : `${broken.length} of ${rules.length} rules are violated.`,
  ].join("\n");
}

const singular = (noun: string) =>
  noun.startsWith("rows of ") ? noun.replace("rows", "row") : noun.replace(/ies$/, "y").replace(/(?<=ch)es$|s$/, "");

function formatRule(rule: string, findings: readonly AuditFinding[]): string[] {
  if (findings.length === 0) return [`  ${styled("green", "✓")} ${rule}`];
  const lines = findings.map(({ about, detail }) => `      ${oneLine(about, aboutMax)}: ${oneLine(detail, detailMax)}`);
  const more = findings.length < perRuleMax ? [] : [`      (at most ${perRuleMax} violations of a rule are shown)`];
  return [`  ${styled("red", "✗")} ${rule}`, ...lines, ...more];
}

const aboutMax = 128;
const detailMax = 300;
