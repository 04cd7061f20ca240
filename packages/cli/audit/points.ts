/** `todoke audit points`: what was checked, and the violations of each rule. */
import { type Audit, type AuditFinding, auditLive, perRuleMax } from "@todoke/points/audit";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { oneLine, plural, print, styled } from "../output.ts";
import { selectService } from "../select-services.ts";
import { withDatabase } from "../service-database.ts";

// A million transactions take about ten seconds. This is enough for a hundred million.
const statementTimeoutMs = 60 * 60 * 1_000;

export async function auditPoints({ env, services, args, switches }: Invocation): Promise<number> {
  if (args.length > 0) throw new UsageError("points takes no further arguments: it audits the whole ledger.");
  const entry = selectService(services, "points");
  const options = { entry, env, purpose: "todoke audit", statementTimeoutMs };
  const audited = await withDatabase(options, ({ db }) => auditLive(db));
  print(switches.has("json") ? JSON.stringify(audited, null, 2) : formatAudit(audited));
  return audited.findings.length > 0 ? 1 : 0;
}

function formatAudit({ checked, rules, findings }: Audit): string {
  const counts = Object.entries(checked).map(([what, count]) => plural(count, what.slice(0, -1)));
  const ofRule = (rule: string) => findings.filter((finding) => finding.rule === rule);
  const broken = rules.filter((rule) => ofRule(rule).length > 0);
  return [
    `Checked ${counts.join(", ")}:`,
    ...rules.flatMap((rule) => formatRule(rule, ofRule(rule))),
    broken.length === 0
      ? `All rules hold (${rules.length}).`
      : `${broken.length} of ${rules.length} rules are violated.`,
  ].join("\n");
}

/** A rule and its violations. Their texts are untrusted, so control characters are replaced. */
function formatRule(rule: string, findings: readonly AuditFinding[]): string[] {
  if (findings.length === 0) return [`  ${styled("green", "✓")} ${rule}`];
  const lines = findings.map(({ about, detail }) => `      ${oneLine(about, aboutMax)}: ${oneLine(detail, detailMax)}`);
  const more = findings.length < perRuleMax ? [] : [`      (at most ${perRuleMax} violations of a rule are shown)`];
  return [`  ${styled("red", "✗")} ${rule}`, ...lines, ...more];
}

const aboutMax = 128;
const detailMax = 300;
