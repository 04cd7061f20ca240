/**
 * Records how tickets ended, for both queues: each end once, with its event, in the caller's transaction.
 *
 * `ticket_ends` has at most one row per ticket, so a ticket ends once in any case. A match is recorded whole or not at all.
 * No other code of this service emits events.
 */
import { type Db, getSqlState, type Tx, transaction } from "@todoke/kernel/db";
import type { NewEvent, Outbox } from "@todoke/kernel/outbox";
import { matchMade, ticketExpired } from "../events/matchmaking-events.ts";
import {
  type EndRow,
  type EndStatus,
  insertEnds,
  type RecordedEndRow,
  selectRecordedEnds,
  toEndRows,
} from "../store/ends.ts";
import type { TicketEnd } from "./ticket.ts";

export type RecordResult =
  | { readonly kind: "recorded" }
  /** The same end was recorded before. */
  | { readonly kind: "duplicate" }
  /** Some of its tickets have another end, given here by ticket ID. Nothing of this end was written. */
  | { readonly kind: "void"; readonly ended: ReadonlyMap<string, EndStatus> };

export interface RecordedEnd {
  readonly end: TicketEnd;
  readonly result: RecordResult;
}

/** The most ends of one call. */
export const endsMax = 500;

/**
 * Returns the result of each end, in input order, with three statements for any number of ends. If two ends name the same
 * ticket, the first one counts, within a batch too. If another process records an end of the same ticket at the same time,
 * this fails with 23505 and writes nothing: run it in `ticketEndTransaction`, which repeats it.
 */
export async function recordEnds(
  tx: Tx,
  ends: readonly TicketEnd[],
  { outbox }: { readonly outbox: Outbox },
): Promise<readonly RecordedEnd[]> {
  if (ends.length > endsMax) throw new RangeError(`${ends.length} ends at once; the limit is ${endsMax}`);
  if (ends.length === 0) return [];
  const rows = ends.map(toEndRows);
  const recorded = await selectRecordedEnds(tx, rows.flat());
  const results = rows.map((each) => decide(each, recorded));
  const isNew = (_: unknown, index: number) => results[index]?.kind === "recorded";
  const newEnds = ends.filter(isNew);
  if (newEnds.length > 0) {
    await insertEnds(tx, {
      matches: newEnds.flatMap((end) => (end.kind === "match" ? [end.match] : [])),
      ends: rows.filter(isNew).flat(),
      damaged: newEnds.filter((end) => end.kind === "damaged"),
    });
    await outbox.append(tx, ...newEnds.flatMap(toEvents));
  }
  return ends.map((end, index) => ({ end, result: results[index] as RecordResult }));
}

/** Adds the rows to `recorded` if they are new, so that later ends of the batch see them. A damaged ticket has no rows. */
function decide(rows: readonly EndRow[], recorded: Map<string, RecordedEndRow>): RecordResult {
  const before = rows.flatMap(({ ticket_id }) => recorded.get(ticket_id) ?? []);
  if (before.length === 0) {
    for (const row of rows) recorded.set(row.ticket_id, row);
    return { kind: "recorded" };
  }
  const isSame = (each: RecordedEndRow) => each.status === rows[0]?.status && each.match_id === rows[0].match_id;
  if (before.length === rows.length && before.every(isSame)) return { kind: "duplicate" };
  const different = before.filter((each) => !isSame(each));
  return { kind: "void", ended: new Map(different.map((each) => [each.ticket_id, each.status])) };
}

/** A cancelled ticket has no event, because its user has the response; a damaged one has none either. */
function toEvents(end: TicketEnd): NewEvent[] {
  if (end.kind === "match") return [matchMade(end.match)];
  return end.kind === "expired" ? [ticketExpired(end)] : [];
}

// Each attempt sees an end that the previous one did not see; more than a few mean that something else is wrong.
const attemptsMax = 5;

/** A transaction that ends tickets. It is repeated if another process ends one of them at the same time. */
export async function ticketEndTransaction<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction(db, work);
    } catch (error) {
      if (attempt >= attemptsMax || getSqlState(error) !== "23505") throw error;
    }
  }
}
