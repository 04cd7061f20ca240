/**
 * The checker: from the evidence of a run to what was broken in it. It knows no process, no connection and no clock;
 * the same evidence gives the same verdict.
 */
import { checkClaims } from "./checks/claims.ts";
import { checkRecovery } from "./checks/recovery.ts";
import type { Evidence } from "./evidence.ts";
import { commandsOf } from "./history.ts";
import { type Figure, type InvariantName, invariants, type Violation } from "./invariants.ts";
import { services } from "./services/index.ts";

export function check(evidence: Evidence): Violation[] {
  return [
    ...services.flatMap((service) => service.check(evidence)),
    ...checkClaims(evidence),
    ...checkRecovery(evidence),
  ];
}

/** How many breaches each figure of the report has. */
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

export const brokenBy = (violations: readonly Violation[]): InvariantName[] => [
  ...new Set(violations.map(({ invariant }) => invariant)),
];

export interface Unknowns {
  readonly unknown: number;
  readonly tookEffect: number;
}

/** What became of the commands whose end no client heard. */
export function unknownsOf(evidence: Evidence): Unknowns {
  const done = new Set(services.flatMap((service) => service.carriedOut?.(evidence) ?? []));
  const unknown = commandsOf(evidence.history).filter(({ attempts }) => attempts.every(({ end }) => end === "unknown"));
  return { unknown: unknown.length, tookEffect: unknown.filter(({ command }) => done.has(command.id)).length };
}
