/** The tickets that can be matched now, with the values that the rules compare. */

import type { OpenTicket } from "../queue/ticket.ts";
import { faultsOfTicket } from "../rules/ticket-errors.ts";
import type { ModeRules, Step } from "../rules/types.ts";

export interface Candidate {
  readonly ticket: OpenTicket;
  /** Its position in join order. */
  readonly queueOrder: number;
  readonly size: number;
  /** 0 for all if the mode does not compare it. */
  readonly skill: number;
  /** The largest difference in skill that it accepts by now. */
  readonly skillRange: number;
  /** The regions that it accepts by now, best first; only `anywhere` if the mode has no regions. */
  readonly regions: readonly string[];
  /** Users whom it must not meet. */
  readonly avoid: readonly string[];
}

/** Not a possible region name, because those are not empty. */
export const anywhere = "";

/**
 * Leaves out expired tickets, tickets that lack what the rules require (they may have changed since the join), tickets without
 * an acceptable region, and a second ticket of the same user.
 */
export function toCandidates(rules: ModeRules, tickets: readonly OpenTicket[], now: number): readonly Candidate[] {
  const candidates: Candidate[] = [];
  const users = new Set<string>();
  for (const ticket of tickets) {
    const isExpired = now >= ticket.expiresAt || now >= ticket.aliveUntil;
    if (isExpired || users.has(ticket.userId) || faultsOfTicket(rules, ticket).length > 0) continue;
    users.add(ticket.userId);
    const waitedMs = now - ticket.joinedAt;
    const regions = acceptedRegions(rules, ticket, waitedMs);
    if (regions.length === 0) continue;
    candidates.push({
      ticket,
      queueOrder: candidates.length,
      size: ticket.partySize,
      skill: rules.skill ? Number(ticket.attributes[rules.skill.attribute]) : 0,
      skillRange: rules.skill ? limitAfter(rules.skill.steps, waitedMs) : Number.POSITIVE_INFINITY,
      regions,
      avoid: rules.avoidLastOpponentMs === undefined ? [] : ticket.avoid,
    });
  }
  return candidates;
}

/** The limit of the step that applies after this wait. */
export function limitAfter(steps: readonly Step[], waitedMs: number): number {
  // The wait is negative if the clock was set back; then the first step applies.
  return (steps.findLast(({ afterMs }) => waitedMs >= afterMs) ?? steps[0])?.limit ?? Number.POSITIVE_INFINITY;
}

function acceptedRegions({ regions, latency }: ModeRules, { attributes }: OpenTicket, waitedMs: number) {
  const named = regions && [...new Set([attributes[regions.attribute]].flat() as string[])];
  if (!latency) return named ?? [anywhere];
  const limit = limitAfter(latency.steps, waitedMs);
  return Object.entries(attributes[latency.attribute] as Readonly<Record<string, number>>)
    .filter(([region, ms]) => ms <= limit && (named === undefined || named.includes(region)))
    .sort(([a, near], [b, far]) => near - far || (a < b ? -1 : 1))
    .map(([region]) => region);
}
