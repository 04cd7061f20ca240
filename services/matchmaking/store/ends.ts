/**
 * The ends of tickets, for both queues: whatever ends is written down here, once, together with the event that tells of it.
 *
 * A ticket ends once: `ticket_ends` has one row for it at the most, whatever a queue believes. A match is written whole or
 * not at all. Nothing else in this service writes events.
 */
import { type Db, sqlStateOf, type Tx, transaction } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import type { TicketEnd } from "../tickets.ts";
import {
  type EndRow,
  type EndStatus,
  endRowsOf,
  insertEnds,
  insertLost,
  type KnownEnd,
  type LostTicket,
  selectKnownEnds,
} from "./end-rows.ts";
import { type EndedTicket, selectTicketEnd } from "./ended-tickets.ts";
import { eventsOf } from "./events.ts";

export { type EndedTicket, selectLastOpponents, selectTicketEnd, selectWaits, type Waits } from "./ended-tickets.ts";

export type Recorded =
  | { readonly kind: "recorded" }
  /** This very end was on record. */
  | { readonly kind: "known" }
  /** Tickets of it had ended otherwise, as said by their ids. Nothing of this end was written. */
  | { readonly kind: "void"; readonly ended: ReadonlyMap<string, EndStatus> };

/** An end, and what became of it here. */
export interface RecordedEnd {
  readonly end: TicketEnd;
  readonly recorded: Recorded;
}

/** More at once are refused: the caller knows how to part them. */
export const endsMax = 500;

/**
 * Answers each end in its place, in three statements however many there are. Of two ends of one ticket the earlier one
 * holds, also within a batch. Where another process writes an end of the same ticket at this moment, it fails with 23505
 * and nothing is written: run it by `endingTickets`, and the second time it sees what the other has written.
 */
export async function recordEnds(
  tx: Tx,
  ends: readonly TicketEnd[],
  { outbox }: { readonly outbox: Outbox },
): Promise<readonly Recorded[]> {
  if (ends.length > endsMax) throw new RangeError(`${ends.length} ends at once: ${endsMax} are the most`);
  if (ends.length === 0) return [];
  const rows = ends.map(endRowsOf);
  const known = await selectKnownEnds(tx, rows.flat());
  const results = rows.map((each) => decide(each, known));
  const isFresh = (_: unknown, place: number) => results[place]?.kind === "recorded";
  const fresh = ends.filter(isFresh);
  if (fresh.length === 0) return results;
  await insertEnds(tx, {
    matches: fresh.flatMap((end) => (end.kind === "match" ? [end.match] : [])),
    ends: rows.filter(isFresh).flat(),
    damaged: fresh.filter((end) => end.kind === "damaged"),
  });
  await outbox.append(tx, ...eventsOf(fresh));
  return results;
}

/** What is written by this batch counts as known to the ends after it. Without rows it is no ticket's end. */
function decide(rows: readonly EndRow[], known: Map<string, KnownEnd>): Recorded {
  const before = rows.flatMap(({ ticket_id }) => known.get(ticket_id) ?? []);
  if (before.length === 0) {
    for (const row of rows) known.set(row.ticket_id, row);
    return { kind: "recorded" };
  }
  const isSame = (each: KnownEnd) => each.status === rows[0]?.status && each.match_id === rows[0].match_id;
  if (before.length === rows.length && before.every(isSame)) return { kind: "known" };
  const otherwise = before.filter((each) => !isSame(each));
  return { kind: "void", ended: new Map(otherwise.map((each) => [each.ticket_id, each.status])) };
}

// Each try sees an end that the one before did not see: more than a few mean that something else is wrong.
const triesMax = 5;

/** A transaction that ends tickets; run again where another process has ended one of them at the same moment. */
export async function endingTickets<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await transaction(db, work);
    } catch (error) {
      if (tries >= triesMax || sqlStateOf(error) !== "23505") throw error;
    }
  }
}

/**
 * A ticket that the queue came back without ends by this, before its player is told so: a match of it that a recorder still
 * holds in its hands can come about no more. There is no event, for its player has the answer. How it ended is answered:
 * so, or otherwise, if the recorder was faster.
 */
export async function recordLost(db: Db, lost: LostTicket): Promise<EndedTicket> {
  await insertLost(db, lost);
  const end = await selectTicketEnd(db, lost.ticketId);
  if (!end) throw new Error(`the end of ticket ${lost.ticketId} was written and is not there`);
  return end;
}
