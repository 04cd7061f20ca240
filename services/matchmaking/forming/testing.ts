/** Tickets and rules for tests of forming: only what a test is about is said. */
import type { ModeRules } from "../rules/index.ts";
import type { OpenTicket } from "../tickets.ts";

/** When tests look at their tickets. */
export const now = 1_000_000;

export const modeRules = (about: Partial<ModeRules> = {}): ModeRules => ({
  mode: "m",
  teams: 2,
  teamSize: 1,
  partyMax: 1,
  ticketMs: 600_000,
  session: {},
  ...about,
});

export interface TicketAbout extends Partial<Omit<OpenTicket, "joinedAt">> {
  readonly waitedMs?: number;
}

/** The user and the ticket are named after the number. */
export const openTicket = (number: number, { waitedMs = 0, ...about }: TicketAbout = {}): OpenTicket => ({
  ticketId: `t${number}`,
  mode: "m",
  userId: `u${number}`,
  partySize: 1,
  attributes: {},
  avoid: [],
  joinedAt: now - waitedMs,
  expiresAt: now + 600_000,
  aliveUntil: now + 600_000,
  ...about,
});
