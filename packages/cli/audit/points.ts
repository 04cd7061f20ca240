/** `todoke audit points`: what was checked, and by rule what does not hold. */
import { type Audit, type AuditFinding, auditLive, perRuleMax } from "@todoke/points/audit";
import { chosen } from "../choice.ts";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { oneLine, plural, say, styled } from "../output.ts";
import { onDatabase } from "../service-database.ts";

// A million transactions take some ten seconds: a hundred million have their time, and what hangs comes to an end.
const statementTimeoutMs = 60 * 60 * 1_000;

export async function auditPoints({ env, services, names, switches }: Call): Promise<number> {
  if (names.length > 0) throw new Misused("All of points is audited at once: name nothing more.");
  const [entry] = chosen(services, ["points"]);
  if (!entry) throw new Misused("There is no points here.");
  const wish = { entry, env, purpose: "todoke audit", statementTimeoutMs };
  const audited = await onDatabase(wish, ({ db }) => auditLive(db));
  say(switches.has("json") ? JSON.stringify(audited, null, 2) : textOf(audited));
  return audited.findings.length > 0 ? 1 : 0;
}

function textOf({ checked, rules, findings }: Audit): string {
  const counts = Object.entries(checked).map(([what, count]) => plural(count, what.slice(0, -1)));
  const ofRule = (rule: string) => findings.filter((finding) => finding.rule === rule);
  const broken = rules.filter((rule) => ofRule(rule).length > 0);
  return [
    `Checked ${counts.join(", ")}:`,
    ...rules.flatMap((rule) => linesOf(rule, ofRule(rule))),
    broken.length === 0
      ? `All rules hold (${rules.length}).`
      : `${broken.length} of ${rules.length} rules do not hold.`,
  ].join("\n");
}

/** A rule, and what breaks it: who wrote those rows is not known, so nothing of them may steer the terminal. */
function linesOf(rule: string, findings: readonly AuditFinding[]): string[] {
  if (findings.length === 0) return [`  ${styled("green", "✓")} ${rule}`];
  const told = findings.map(({ about, detail }) => `      ${oneLine(about, aboutMax)}: ${oneLine(detail, detailMax)}`);
  const more = findings.length < perRuleMax ? [] : [`      (no more than ${perRuleMax} of a rule are shown)`];
  return [`  ${styled("red", "✗")} ${rule}`, ...told, ...more];
}

const aboutMax = 128;
const detailMax = 300;
