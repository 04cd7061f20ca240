/** Test helpers: a database, tickets and their ends. */
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { openOutbox } from "@todoke/kernel/outbox";
import { fixedId, patient, testDatabase } from "@todoke/kernel/testing";
import { recordEnds, ticketEndTransaction } from "../queue/record-ends.ts";
import type { ExpiryReason, OpenTicket, TicketEnd } from "../queue/ticket.ts";

const own = { name: "matchmaking", dir: new URL("../migrations/", import.meta.url) };

export const openTestDatabase = () =>
  testDatabase({ schema: "matchmaking", sets: [kernelMigrations, own], pools: patient });

/** Half an hour ago, well within the last hour. */
const joinedAt = Date.now() - 30 * 60_000;

export const ticket = (user: string, overrides: Partial<OpenTicket> = {}): OpenTicket => ({
  ticketId: `duel.${user}`,
  mode: "duel",
  userId: user,
  partySize: 1,
  attributes: { skill: 12 },
  avoid: [],
  joinedAt,
  expiresAt: joinedAt + 3_600_000,
  aliveUntil: joinedAt + 3_600_000,
  ...overrides,
});

/** A match of these users, each in a team of their own. */
export function match(n: number, users: readonly string[], waitedMs = 5_000): TicketEnd & { kind: "match" } {
  const seats = users.map((user, index) => ({ ticket: ticket(user), team: index + 1 }));
  const terms = { rulesVersion: "v1", session: { server: "eu-1" } };
  return {
    kind: "match",
    match: { ...terms, matchId: fixedId(n), mode: "duel", matchedAt: joinedAt + waitedMs, seats },
  };
}

export const cancelled = (user: string): TicketEnd => ({
  kind: "cancelled",
  ticket: ticket(user),
  endedAt: joinedAt + 7_000,
});

export const expired = (user: string, reason: ExpiryReason = "timeout"): TicketEnd => ({
  kind: "expired",
  ticket: ticket(user),
  reason,
  endedAt: joinedAt + 8_000,
});

const outbox = openOutbox();

/** Returns the results only. */
export const recordIn = async (tx: Tx, ...ends: readonly TicketEnd[]) =>
  (await recordEnds(tx, ends, { outbox })).map(({ result }) => result);

/** With the retry that the queues use. */
export const record = (db: Db, ...ends: readonly TicketEnd[]) =>
  ticketEndTransaction(db, (tx) => recordIn(tx, ...ends));

/** Without a retry. */
export const recordOnce = (db: Db, ...ends: readonly TicketEnd[]) => transaction(db, (tx) => recordIn(tx, ...ends));

/** The row counts of all tables that ends are written to. */
export async function counts(db: Db) {
  const count = async (table: string) => Number((await db.query(`select count(*) from ${table}`)).rows[0].count);
  return {
    matches: await count("matches"),
    ends: await count("ticket_ends"),
    damaged: await count("damaged_tickets"),
    events: await count("outbox_events"),
  };
}
