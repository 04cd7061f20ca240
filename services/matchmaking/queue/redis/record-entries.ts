/**
 * Records ends from the stream in PostgreSQL, then acks them in Redis.
 *
 * After a crash between the two, ends are recorded again, which changes nothing. PostgreSQL decides even if Redis has lost
 * data: a ticket with a recorded end stays ended, a match that would need it is void, and the other tickets of that match wait
 * again.
 */
import { type Db, getSqlState } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import type { RedisConnection } from "@todoke/redis";
import { type RecordedEnd, type RecordResult, recordEnds, ticketEndTransaction } from "../record-ends.ts";
import type { OpenTicket, TicketEnd } from "../ticket.ts";
import { keysFor } from "./prelude.ts";
import { ackEnds } from "./recorder-scripts.ts";
import { damagedEntry, type EndEntry } from "./ticket-record.ts";

export interface RecordOptions {
  readonly link: RedisConnection;
  readonly db: Db;
  readonly outbox: Outbox;
  /** The prefix of all Redis keys. */
  readonly keyPrefix?: string;
  /** Called with every result, before the ack; after a failed ack, with the same ends again. */
  readonly onRecorded?: (ends: readonly RecordedEnd[]) => void;
}

export const defaultKeyPrefix = "mm";

export interface EntryBatch {
  readonly mode: string;
  /** At most `endsMax`. */
  readonly entries: readonly EndEntry[];
}

/** Returns the results in input order, and how many tickets wait again. */
export async function recordEntries(options: RecordOptions, { mode, entries }: EntryBatch) {
  const { link, keyPrefix = defaultKeyPrefix, onRecorded } = options;
  const recorded = await recordAll(options, { mode, entries });
  onRecorded?.(recorded);
  const acks = entries.map((entry, index) => toAck(entry, recorded[index]?.result));
  const input = { keys: keysFor(keyPrefix, mode), arguments: [JSON.stringify(acks)] };
  return { recorded, requeued: Number(await link.run(ackEnds, input)) };
}

async function recordAll(options: RecordOptions, { mode, entries }: EntryBatch): Promise<readonly RecordedEnd[]> {
  const { db, outbox } = options;
  const record = (ends: readonly TicketEnd[]) => ticketEndTransaction(db, (tx) => recordEnds(tx, ends, { outbox }));
  try {
    return await record(entries.map((entry) => entry.end));
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    // Record one by one, so that the entry that PostgreSQL cannot store is quarantined and does not block the others.
    const [only, ...others] = entries;
    if (only && others.length === 0) return record([damagedEntry({ mode, id: only.id, content: only.end }, error)]);
    const all: RecordedEnd[] = [];
    for (const entry of entries) all.push(...(await recordAll(options, { mode, entries: [entry] })));
    return all;
  }
}

/** A value or constraint that PostgreSQL will reject every time. */
function isUnstorable(error: unknown): boolean {
  const state = getSqlState(error) ?? "";
  return (state.startsWith("22") || state.startsWith("23")) && state !== "23505";
}

function toAck({ id, end, ticketIds }: EndEntry, result: RecordResult | undefined) {
  const hasEnded = (ticketId: string) => result?.kind !== "void" || result.ended.has(ticketId);
  const users = new Map(ticketsOf(end).map(({ ticketId, userId }) => [ticketId, userId]));
  const ended = ticketIds.filter(hasEnded);
  return {
    entry: id,
    match: end.kind === "match" ? end.match.matchId : "",
    ended,
    users: ended.map((ticketId) => users.get(ticketId) ?? ""),
    waiting: ticketIds.filter((ticketId) => !hasEnded(ticketId)),
  };
}

function ticketsOf(end: TicketEnd): readonly OpenTicket[] {
  if (end.kind === "match") return end.match.seats.map(({ ticket }) => ticket);
  return end.kind === "damaged" ? [] : [end.ticket];
}
