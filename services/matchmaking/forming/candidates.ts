/** Tickets as forming sees them: those that can be matched now, with what the rules weigh. */
import { faultsOfTicket } from "../rules/ticket-faults.ts";
import type { ModeRules, Step } from "../rules/types.ts";
import type { OpenTicket } from "../tickets.ts";

export interface Candidate {
  readonly ticket: OpenTicket;
  /** Its place in the order of waiting: smaller has waited longer. */
  readonly place: number;
  readonly size: number;
  /** 0 for all where the mode does not weigh it. */
  readonly skill: number;
  /** How far from it others may be by now. */
  readonly reach: number;
  /** Where it would play by now, as it likes best first; `anywhere` alone where the mode does not ask. */
  readonly regions: readonly string[];
  /** Users that it is not to meet. */
  readonly avoid: readonly string[];
}

/** No region is called so: names are not empty. */
export const anywhere = "";

/**
 * Left out: what is over, what lacks something that the rules ask for (they may have changed since it joined), what would
 * play nowhere yet, and a second ticket of the same user, who is not to meet themselves.
 */
export function candidatesOf(rules: ModeRules, tickets: readonly OpenTicket[], now: number): readonly Candidate[] {
  const candidates: Candidate[] = [];
  const users = new Set<string>();
  for (const ticket of tickets) {
    const isOver = now >= ticket.expiresAt || now >= ticket.aliveUntil;
    if (isOver || users.has(ticket.userId) || faultsOfTicket(rules, ticket).length > 0) continue;
    users.add(ticket.userId);
    const waitedMs = now - ticket.joinedAt;
    const regions = regionsOf(rules, ticket, waitedMs);
    if (regions.length === 0) continue;
    candidates.push({
      ticket,
      place: candidates.length,
      size: ticket.partySize,
      skill: rules.skill ? Number(ticket.attributes[rules.skill.attribute]) : 0,
      reach: rules.skill ? limitAfter(rules.skill.steps, waitedMs) : Number.POSITIVE_INFINITY,
      regions,
      avoid: rules.avoidLastOpponentMs === undefined ? [] : ticket.avoid,
    });
  }
  return candidates;
}

/** What the last step says that holds after so long. */
export function limitAfter(steps: readonly Step[], waitedMs: number): number {
  // Of a ticket from the future, as after a clock was set back, the first step holds.
  return (steps.findLast(({ afterMs }) => waitedMs >= afterMs) ?? steps[0])?.limit ?? Number.POSITIVE_INFINITY;
}

function regionsOf({ regions, latency }: ModeRules, { attributes }: OpenTicket, waitedMs: number): readonly string[] {
  const named = regions && [...new Set([attributes[regions.attribute]].flat() as string[])];
  if (!latency) return named ?? [anywhere];
  const limit = limitAfter(latency.steps, waitedMs);
  return Object.entries(attributes[latency.attribute] as Readonly<Record<string, number>>)
    .filter(([region, ms]) => ms <= limit && (named === undefined || named.includes(region)))
    .sort(([a, near], [b, far]) => near - far || (a < b ? -1 : 1))
    .map(([region]) => region);
}
