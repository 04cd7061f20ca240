/** The checker: evidence of a run in, violations out. It is a pure function: the same evidence gives the same result. */
import { checkClaims } from "./checks/claims.ts";
import { checkRecovery } from "./checks/recovery.ts";
import { auditFindings, type Evidence } from "./evidence.ts";
import { groupCommands } from "./history.ts";
import { type Figure, type InvariantName, invariants, type Violation, violation } from "./invariants.ts";
import { selectServices } from "./services/index.ts";

export function check(evidence: Evidence): Violation[] {
  return [
    ...selectServices(evidence.facts.services).flatMap((service) => [
      ...service.check(evidence),
      ...checkAudit(evidence, service.name),
    ]),
    ...checkClaims(evidence),
    ...checkRecovery(evidence),
  ];
}

const checkAudit = ({ tables }: Evidence, service: string): Violation[] =>
  (tables[`${service}/${auditFindings}`] ?? []).map(({ rule, about, detail }) =>
    violation("audit-is-clean", `${service}: "${rule}" is broken by ${about}: ${detail}`),
  );

/** Number of violations per figure of the report. */
export function countByFigure(violations: readonly Violation[]): Record<Figure, number> {
  const counts: Record<Figure, number> = {
    lost: 0,
    doubled: 0,
    unexpected: 0,
    unknown: 0,
    order: 0,
    answers: 0,
    leases: 0,
    recovery: 0,
  };
  for (const { invariant } of violations) counts[invariants[invariant].figure]++;
  return counts;
}

export const brokenInvariants = (violations: readonly Violation[]): InvariantName[] => [
  ...new Set(violations.map(({ invariant }) => invariant)),
];

export interface Unknowns {
  readonly unknown: number;
  readonly tookEffect: number;
}

/** Commands with an unknown outcome, and how many of them took effect. */
export function countUnknowns(evidence: Evidence): Unknowns {
  const done = new Set(
    selectServices(evidence.facts.services).flatMap((service) => service.effectiveCommands?.(evidence) ?? []),
  );
  const unknown = groupCommands(evidence.history).filter(({ attempts }) =>
    attempts.every(({ end }) => end === "unknown"),
  );
  return { unknown: unknown.length, tookEffect: unknown.filter(({ command }) => done.has(command.id)).length };
}
