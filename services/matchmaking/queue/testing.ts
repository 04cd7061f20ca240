/** Shared by the tests of both queues: the harness, requests to join, and reads of the stored data. */
import { randomBytes, randomUUID } from "node:crypto";
import { type Db, utcText } from "@todoke/kernel/db";
import { digestOf } from "@todoke/kernel/idempotency";
import { expect } from "vitest";
import type { FifoRound, TicketQueue, TicketRequest } from "./index.ts";
import { ticketEndTransaction } from "./record-ends.ts";
import { openTicketIds } from "./ticket-id.ts";

/** A queue that only one test uses. */
export interface Harness extends AsyncDisposable {
  /** Opens the queue as another process would. */
  open(): TicketQueue;
  /** Resolves when every end of the queue is recorded. */
  allRecorded(): Promise<void>;
  /** Makes a waiting ticket unreadable. */
  damage(ticketId: string): Promise<void>;
  readonly db: Db;
}

export const mode = "duel";

/** All processes share one secret. */
export const ticketIds = openTicketIds([randomBytes(32)]);

/** A request of a new user with a new key, unless given. */
export function ticketRequest(
  overrides: Partial<Omit<TicketRequest, "key">> & { readonly key?: string } = {},
): TicketRequest {
  const { key = randomUUID(), userId = `u_${randomBytes(6).toString("hex")}`, ...more } = overrides;
  const fields = { mode, userId, partySize: 1, attributes: {}, avoid: [], ticketMs: 600_000, ...more };
  const { partySize, attributes } = fields;
  const scope = `user:${userId} POST ${fields.mode}`;
  return { ...fields, key: { scope, key, requestHash: digestOf({ partySize, attributes }) } };
}

export const terms = { rulesVersion: "v1", session: { server: "eu-1" } };
export const duels: FifoRound = { ...terms, players: 2, matchesMax: 50 };

/** Joins new users one after the other. */
export async function joinInOrder(
  queue: TicketQueue,
  count: number,
  overrides: Parameters<typeof ticketRequest>[0] = {},
) {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push((await queue.join(ticketRequest(overrides))).ticketId);
  return ids;
}

/** Cancels all tickets of these users, with a retry if another process ends one of them at the same time. */
export const cancelUsers = (
  { queue, db }: { readonly queue: TicketQueue; readonly db: Db },
  userIds: readonly string[],
) => ticketEndTransaction(db, (tx) => queue.cancelForUsers(tx, { userIds, modes: [mode, "ranked"] }));

export interface EndRow {
  readonly ticket_id: string;
  readonly user_id: string;
  readonly status: "MATCHED" | "CANCELLED" | "EXPIRED";
  readonly reason: string | null;
  readonly match_id: string | null;
  readonly ended_at: string;
  readonly expires_at: string;
}

export interface EventRow {
  readonly event_type: string;
  readonly payload: {
    readonly match_id?: string;
    readonly ticket_id?: string;
    readonly reason?: string;
    readonly players?: readonly { readonly user_id: string; readonly ticket_id: string; readonly team: number }[];
  };
}

/** Reads all recorded data in one statement; events in the order in which they were written. */
export async function readStored(db: Db) {
  const { rows } = await db.query<{ ends: EndRow[]; matches: string[]; events: EventRow[]; damaged: string[] }>(
    `select array(select to_jsonb(e) from (
                    select ticket_id, user_id, status, reason, match_id,
                           ${utcText("ended_at")} as ended_at, ${utcText("expires_at")} as expires_at
                      from ticket_ends) e) as ends,
            array(select match_id::text from matches) as matches,
            array(select jsonb_build_object('event_type', event_type, 'payload', payload)
                    from outbox_events order by position) as events,
            array(select ticket_id from damaged_tickets) as damaged`,
  );
  const record = rows[0] ?? { ends: [], matches: [], events: [], damaged: [] };
  const ended = (status: EndRow["status"]) =>
    record.ends.filter((row) => row.status === status).map((row) => row.ticket_id);
  return { ...record, ended };
}

/** The ticket IDs of each match, in the order of the events. */
export async function matchedTicketIds(db: Db): Promise<string[][]> {
  const { events } = await readStored(db);
  const made = events.filter((event) => event.event_type === "MatchMade");
  return made.map(({ payload }) => (payload.players ?? []).map((player) => player.ticket_id));
}

/**
 * Invariants of the recorded data (M1, M2, M4, M7): a match has its row, its event and all of its tickets, of different users;
 * an expired ticket has one event; no ticket was matched after its end time.
 */
export async function expectConsistent(db: Db): Promise<void> {
  const { ends, matches, events, ended } = await readStored(db);
  const payloads = (type: string) => events.filter((event) => event.event_type === type).map((event) => event.payload);
  const made = payloads("MatchMade");
  expect(made.map((payload) => payload.match_id).sort()).toEqual([...matches].sort());
  const seated = ends.filter((row) => row.status === "MATCHED");
  for (const { match_id, players = [] } of made) {
    const seats = seated.filter((row) => row.match_id === match_id);
    expect(players.map((player) => player.ticket_id).sort()).toEqual(seats.map((row) => row.ticket_id).sort());
    expect(new Set(players.map((player) => player.user_id)).size, "different users").toBe(players.length);
  }
  expect(made.flatMap(({ players = [] }) => players)).toHaveLength(seated.length);
  const expired = payloads("TicketExpired").map((payload) => payload.ticket_id);
  expect(expired.sort()).toEqual(ended("EXPIRED").sort());
  for (const row of seated) expect(row.ended_at <= row.expires_at, `${row.ticket_id} matched in time`).toBe(true);
}
