/** What the tests of this store share: a database of their own, and ends of tickets that can be told apart. */
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { openOutbox } from "@todoke/kernel/outbox";
import { fixedId, patient, testDatabase } from "@todoke/kernel/testing";
import type { ExpiryReason, OpenTicket, TicketEnd } from "../tickets.ts";
import { endingTickets, recordEnds } from "./ends.ts";

const own = { name: "matchmaking", dir: new URL("../migrations/", import.meta.url) };

export const freshDatabase = () =>
  testDatabase({ schema: "matchmaking", sets: [kernelMigrations, own], pools: patient });

/** Half past, so that what is said about an hour is about one. */
const joinedAt = Date.now() - 30 * 60_000;

export const ticket = (user: string, about: Partial<OpenTicket> = {}): OpenTicket => ({
  ticketId: `duel.${user}`,
  mode: "duel",
  userId: user,
  partySize: 1,
  attributes: { skill: 12 },
  avoid: [],
  joinedAt,
  expiresAt: joinedAt + 3_600_000,
  aliveUntil: joinedAt + 3_600_000,
  ...about,
});

/** A match of these users, each on a team of their own, after waiting for so long. */
export function match(n: number, users: readonly string[], waitedMs = 5_000): TicketEnd & { kind: "match" } {
  const seats = users.map((user, place) => ({ ticket: ticket(user), team: place + 1 }));
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

export const recordIn = (tx: Tx, ...ends: readonly TicketEnd[]) => recordEnds(tx, ends, { outbox });

/** As a queue does it. */
export const record = (db: Db, ...ends: readonly TicketEnd[]) => endingTickets(db, (tx) => recordIn(tx, ...ends));

/** Once, whatever happens. */
export const recordOnce = (db: Db, ...ends: readonly TicketEnd[]) => transaction(db, (tx) => recordIn(tx, ...ends));

/** How many rows each table has that ends are written to. */
export async function counts(db: Db) {
  const count = async (table: string) => Number((await db.query(`select count(*) from ${table}`)).rows[0].count);
  return {
    matches: await count("matches"),
    ends: await count("ticket_ends"),
    damaged: await count("damaged_tickets"),
    events: await count("outbox_events"),
  };
}
