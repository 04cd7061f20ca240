/**
 * The queue in PostgreSQL.
 *
 * A ticket leaves `tickets` in the transaction that records its end and its event, so a crash leaves nothing half done. If
 * the connection is lost during COMMIT, the caller gets `CommitUnknown`; repeating the call returns the actual result.
 */
import { randomUUID } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import { afterCommit, type Db, type Tx } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import { selectTicketEnd } from "../../store/ended-tickets.ts";
import { selectSnapshot } from "../../store/queue/snapshot.ts";
import { isDamaged, isTicket, parseRow, type TicketRow } from "../../store/queue/ticket-rows.ts";
import * as sql from "../../store/queue/tickets.ts";
import type { FoundTicket, SweepResult, TicketQueue } from "../index.ts";
import { endsMax, type RecordedEnd, recordEnds, ticketEndTransaction } from "../record-ends.ts";
import type { OpenTicket, TicketEnd } from "../ticket.ts";
import { openTicketIds, type TicketIds } from "../ticket-id.ts";
import { createBatchedJoin } from "./join.ts";
import { commitProposals, matchFifo } from "./matching.ts";

export interface PostgresQueueOptions {
  readonly db: Db;
  readonly outbox: Outbox;
  /** Without it, IDs do not prove who owns a ticket. */
  readonly ids?: Pick<TicketIds, "create">;
  /** Called with the ends of a transaction after it has committed. */
  readonly onRecorded?: (ends: readonly RecordedEnd[]) => void;
}

// Transactions of one sweep, with up to `endsMax` tickets each; the next sweep continues.
const batchesMax = 50;

export function openPostgresQueue(options: PostgresQueueOptions): TicketQueue {
  const { db, outbox, ids = openTicketIds([]), onRecorded } = options;
  const holder = randomUUID();

  /** Records the ends, and deletes from the queue all tickets that have ended, by these ends or earlier. */
  async function end(tx: Tx, ends: readonly TicketEnd[]): Promise<readonly RecordedEnd[]> {
    const all: RecordedEnd[] = [];
    for (let first = 0; first < ends.length; first += endsMax)
      all.push(...(await recordEnds(tx, ends.slice(first, first + endsMax), { outbox })));
    if (all.length === 0) return all;
    await sql.deleteTickets(tx, all.flatMap(endedIds));
    afterCommit(tx, () => onRecorded?.(all));
    return all;
  }

  /** Ends those of the tickets that are expired or damaged. */
  const endUnmatchable = (ticketIds: readonly string[]) =>
    ticketEndTransaction(db, async (tx) => end(tx, (await sql.lockTickets(tx, ticketIds)).flatMap(unmatchableEnd)));

  const cancel: TicketQueue["cancel"] = (ticketId) =>
    ticketEndTransaction(db, async (tx) => {
      const [row] = await sql.lockTickets(tx, [ticketId]);
      if (row) await end(tx, [cancelledEnd(row)]);
      return (await selectTicketEnd(tx, ticketId))?.status;
    });

  async function sweep(mode: string): Promise<SweepResult> {
    const swept = { expired: 0, damaged: 0 };
    let status = await sql.selectQueueStatus(db, mode);
    for (let batches = 0; status.anyExpired && batches < batchesMax; batches++) {
      const ended = await ticketEndTransaction(db, async (tx) =>
        end(tx, (await sql.lockExpired(tx, mode, endsMax)).flatMap(unmatchableEnd)),
      );
      for (const { end: how, result } of ended)
        if (result.kind === "recorded" && (how.kind === "expired" || how.kind === "damaged")) swept[how.kind]++;
      status = await sql.selectQueueStatus(db, mode);
      if (ended.length === 0) break; // Other transactions hold the expired tickets and end them.
    }
    const { waiting, oldestMs, nextEndMs } = status;
    return { ...swept, waiting, ...(oldestMs !== null && { oldestMs }), ...(nextEndMs !== null && { nextEndMs }) };
  }

  const findOfUser = createBatcher<string, readonly FoundTicket[]>({
    async run(userIds) {
      const rows = await sql.selectUserTickets(db, [...new Set(userIds)]);
      const ofUser = Map.groupBy(rows, ({ user_id }) => user_id);
      return userIds.map((userId) => (ofUser.get(userId) ?? []).flatMap(toFoundTicket));
    },
  });

  return {
    join: createBatchedJoin({ db, ids, endIfExpired: async (ticketId) => void (await endUnmatchable([ticketId])) }),
    cancel,
    sweep,

    async status(mode) {
      const { waiting, oldestMs } = await sql.selectQueueStatus(db, mode);
      return { waiting, ...(oldestMs !== null && { oldestMs }) };
    },

    async cancelForUsers(tx, users) {
      await end(tx, (await sql.lockUserTickets(tx, users)).map(cancelledEnd));
    },

    find: async (ticketId) => (await sql.selectTicket(db, ticketId)).flatMap(toFoundTicket)[0],
    findOfUser: ({ userId }) => findOfUser(userId),

    async heartbeat(ticketId, heartbeatMs) {
      const row = await sql.updateHeartbeat(db, ticketId, heartbeatMs ?? null);
      const ticket = row && parseRow(row);
      return ticket && isTicket(ticket) ? ticket : undefined;
    },

    matchFifo: (mode, round) => matchFifo({ db, end }, mode, round),
    commitProposals: (mode, proposals, terms) => commitProposals({ db, end }, { mode, proposals, terms }),
    acquireFormingLease: (mode, leaseMs) => sql.acquireFormingLease(db, { mode, holder, leaseMs }),

    async snapshot(mode, ticketsMax) {
      const { rows, now } = await selectSnapshot(db, mode, ticketsMax);
      const parsed = rows.map(parseRow);
      const damaged = parsed.filter(isDamaged);
      if (damaged.length > 0) await endUnmatchable(damaged.map(({ ticketId }) => ticketId));
      return { tickets: parsed.filter(isTicket), now };
    },

    // The caller owns the pool.
    async [Symbol.asyncDispose]() {},
  };
}

/** Nothing for a damaged ticket. */
function toFoundTicket(row: TicketRow): FoundTicket[] {
  const ticket = parseRow(row);
  return isTicket(ticket) ? [{ ticket, status: row.is_expired ? "EXPIRED" : "QUEUED" }] : [];
}

/** The end of a ticket that is damaged or expired; nothing for one that waits. */
function unmatchableEnd(row: TicketRow): TicketEnd[] {
  const end = cancelledEnd(row);
  return end.kind === "cancelled" ? [] : [end];
}

/** A ticket that is expired by now is recorded as EXPIRED. */
function cancelledEnd(row: TicketRow): TicketEnd {
  const ticket = parseRow(row);
  if (isDamaged(ticket)) return ticket;
  return row.is_expired ? expiredEnd(ticket, row.now) : { kind: "cancelled", ticket, endedAt: row.now };
}

const expiredEnd = (ticket: OpenTicket, endedAt: number): TicketEnd => ({
  kind: "expired",
  ticket,
  reason: ticket.aliveUntil < ticket.expiresAt ? "heartbeat" : "timeout",
  endedAt,
});

/** The tickets that have ended: of a void match, those that had ended before. */
function endedIds({ end, result }: RecordedEnd): string[] {
  if (result.kind === "void") return [...result.ended.keys()];
  if (end.kind === "match") return end.match.seats.map(({ ticket }) => ticket.ticketId);
  return [end.kind === "damaged" ? end.ticketId : end.ticket.ticketId];
}
