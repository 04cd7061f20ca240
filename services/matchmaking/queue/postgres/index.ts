/**
 * The queue in PostgreSQL, with the promises of the port.
 *
 * A ticket leaves `tickets` in the transaction that puts its end on record, with its event; so nothing is ever half done,
 * whoever dies when. A COMMIT whose answer was lost is told as such: asked again, the queue says what became of it.
 */
import { randomUUID } from "node:crypto";
import { afterCommit, type Db, type Tx } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import { endingTickets, endsMax, type RecordedEnd, recordEnds, selectTicketEnd } from "../../store/ends.ts";
import { openTicketIds, type TicketIds } from "../../ticket-id.ts";
import type { TicketEnd } from "../../tickets.ts";
import type { Swept, TicketQueue } from "../index.ts";
import { joinByBatches } from "./join.ts";
import { matchInOrder, settle } from "./matching.ts";
import { expiredEnd, isDamaged, isTicket, readRow, type TicketRow } from "./rows.ts";
import { selectSnapshot } from "./snapshot.ts";
import * as sql from "./statements.ts";

export interface PostgresQueueOptions {
  readonly db: Db;
  readonly outbox: Outbox;
  /** Without it, IDs prove nothing. */
  readonly ids?: Pick<TicketIds, "create">;
  /** Hears of every end once it has committed. */
  readonly onRecorded?: (ends: readonly RecordedEnd[]) => void;
}

// Transactions of one sweep, with up to `endsMax` tickets each; the next sweep goes on.
const roundsMax = 50;

export function openPostgresQueue(options: PostgresQueueOptions): TicketQueue {
  const { db, outbox, ids = openTicketIds([]), onRecorded } = options;
  const self = randomUUID();

  /** Puts the ends on record, and takes out of the queue what has ended by now, by these ends or before. */
  async function end(tx: Tx, ends: readonly TicketEnd[]): Promise<readonly RecordedEnd[]> {
    const all: RecordedEnd[] = [];
    for (let first = 0; first < ends.length; first += endsMax) {
      const some = ends.slice(first, first + endsMax);
      const results = await recordEnds(tx, some, { outbox });
      all.push(...results.map((recorded, place) => ({ end: some[place] as TicketEnd, recorded })));
    }
    if (all.length === 0) return all;
    await sql.deleteTickets(tx, all.flatMap(endedIds));
    afterCommit(tx, () => onRecorded?.(all));
    return all;
  }

  /** Ends those of the tickets that are over, or are none; the others are left as they are. */
  const endUnfit = (ticketIds: readonly string[]) =>
    endingTickets(db, async (tx) => end(tx, (await sql.lockTickets(tx, ticketIds)).flatMap(unfitEnd)));

  const cancel: TicketQueue["cancel"] = (ticketId) =>
    endingTickets(db, async (tx) => {
      const [row] = await sql.lockTickets(tx, [ticketId]);
      if (row) await end(tx, [endOfCancelled(row)]);
      return (await selectTicketEnd(tx, ticketId))?.status;
    });

  async function sweep(mode: string): Promise<Swept> {
    const swept = { expired: 0, damaged: 0 };
    let standing = await sql.selectStanding(db, mode);
    for (let rounds = 0; standing.isAnyOver && rounds < roundsMax; rounds++) {
      const ended = await endingTickets(db, async (tx) =>
        end(tx, (await sql.lockOver(tx, mode, endsMax)).flatMap(unfitEnd)),
      );
      for (const { end: how, recorded } of ended)
        if (recorded.kind === "recorded" && (how.kind === "expired" || how.kind === "damaged")) swept[how.kind]++;
      standing = await sql.selectStanding(db, mode);
      if (ended.length === 0) break; // What is over is held by others, who end it.
    }
    const { waiting, oldestMs, nextEndMs } = standing;
    return { ...swept, waiting, ...(oldestMs !== null && { oldestMs }), ...(nextEndMs !== null && { nextEndMs }) };
  }

  return {
    join: joinByBatches({ db, ids, endIfOver: async (ticketId) => void (await endUnfit([ticketId])) }),
    cancel,
    sweep,

    async standing(mode) {
      const { waiting, oldestMs } = await sql.selectStanding(db, mode);
      return { waiting, ...(oldestMs !== null && { oldestMs }) };
    },

    async cancelAllOf(tx, users) {
      await end(tx, (await sql.lockTicketsOf(tx, users)).map(endOfCancelled));
    },

    async find(ticketId) {
      const row = await sql.selectTicket(db, ticketId);
      const ticket = row && readRow(row);
      if (!ticket || !isTicket(ticket)) return undefined;
      return { ticket, status: row.is_over ? "EXPIRED" : "QUEUED" };
    },

    async beat(ticketId, heartbeatMs) {
      const row = await sql.updateAlive(db, ticketId, heartbeatMs ?? null);
      const ticket = row && readRow(row);
      return ticket && isTicket(ticket) ? ticket : undefined;
    },

    matchInOrder: (mode, round) => matchInOrder({ db, end }, mode, round),
    settle: (mode, proposals, terms) => settle({ db, end }, { mode, proposals, terms }),
    holdForming: (mode, forMs) => sql.takeTurn(db, { mode, holder: self, forMs }),

    async snapshot(mode, ticketsMax) {
      const { rows, now } = await selectSnapshot(db, mode, ticketsMax);
      const reads = rows.map(readRow);
      const damaged = reads.filter(isDamaged);
      if (damaged.length > 0) await endUnfit(damaged.map(({ ticketId }) => ticketId));
      return { tickets: reads.filter(isTicket), now };
    },

    // The pool is its owner's.
    async [Symbol.asyncDispose]() {},
  };
}

/** How a row ends that nobody can be matched with: it is no ticket, or its time is up. Nothing of one that waits. */
function unfitEnd(row: TicketRow): TicketEnd[] {
  const read = readRow(row);
  if (isDamaged(read)) return [read];
  return row.is_over ? [expiredEnd(read, row.now)] : [];
}

/** A cancel that comes too late finds a ticket that has expired. */
function endOfCancelled(row: TicketRow): TicketEnd {
  const read = readRow(row);
  if (isDamaged(read)) return read;
  return row.is_over ? expiredEnd(read, row.now) : { kind: "cancelled", ticket: read, endedAt: row.now };
}

/** The tickets that are over: of a match that did not come about, those which had ended before. */
function endedIds({ end, recorded }: RecordedEnd): string[] {
  if (recorded.kind === "void") return [...recorded.ended.keys()];
  if (end.kind === "match") return end.match.seats.map(({ ticket }) => ticket.ticketId);
  return [end.kind === "damaged" ? end.ticketId : end.ticket.ticketId];
}
