/** Tickets and rules with defaults, for tests of forming. */

import type { OpenTicket } from "../queue/ticket.ts";
import type { ModeRules } from "../rules/index.ts";

/** The time of the tests. */
export const now = 1_000_000;

export const modeRules = (overrides: Partial<ModeRules> = {}): ModeRules => ({
  mode: "m",
  teams: 2,
  teamSize: 1,
  partyMax: 1,
  ticketMs: 600_000,
  session: {},
  ...overrides,
});

export interface TicketOverrides extends Partial<Omit<OpenTicket, "joinedAt">> {
  readonly waitedMs?: number;
}

/** The user and the ticket are named after the number. */
export const openTicket = (number: number, { waitedMs = 0, ...overrides }: TicketOverrides = {}): OpenTicket => ({
  ticketId: `t${number}`,
  mode: "m",
  userId: `u${number}`,
  partySize: 1,
  attributes: {},
  avoid: [],
  joinedAt: now - waitedMs,
  expiresAt: now + 600_000,
  aliveUntil: now + 600_000,
  ...overrides,
});
