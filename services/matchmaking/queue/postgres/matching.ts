/** Makes matches from tickets in PostgreSQL, in join order or as proposed. Each match is made whole or not at all. */
import { randomUUIDv7 } from "node:crypto";
import type { Db, Tx } from "@todoke/kernel/db";
import { type Damaged, isDamaged, isTicket, parseRow, type TicketRow } from "../../store/queue/ticket-rows.ts";
import * as sql from "../../store/queue/tickets.ts";
import type { FifoRound, Proposal } from "../index.ts";
import { type RecordedEnd, ticketEndTransaction } from "../record-ends.ts";
import type { MatchTerms, OpenTicket, Seat, TicketEnd } from "../ticket.ts";

export interface MatchingDeps {
  readonly db: Db;
  readonly end: (tx: Tx, ends: readonly TicketEnd[]) => Promise<readonly RecordedEnd[]>;
}

// Bounds of one transaction: a cancel of one of its tickets waits for it.
const matchesPerBatchMax = 100;
const ticketsPerBatchMax = 1_000;
// Transactions of one call; the next call continues.
const batchesMax = 50;

export async function matchFifo({ db, end }: MatchingDeps, mode: string, round: FifoRound): Promise<{ made: number }> {
  const { players, matchesMax, ...terms } = round;
  const perBatchMax = Math.max(1, Math.min(matchesPerBatchMax, Math.floor(ticketsPerBatchMax / players)));
  let made = 0;
  for (let batches = 0; batches < batchesMax && made < matchesMax; batches++) {
    const wanted = Math.min(perBatchMax, matchesMax - made);
    const ended = await ticketEndTransaction(db, async (tx) => {
      await sql.lockMode(tx, mode);
      const rows = await sql.lockOldest(tx, mode, wanted * players);
      const { tickets, damaged } = parseRows(rows);
      const groups = Array.from({ length: Math.floor(tickets.length / players) }, (_, n) =>
        tickets.slice(n * players, (n + 1) * players).map((ticket, index) => ({ ticket, team: index + 1 })),
      );
      return end(tx, [...damaged, ...groups.map((seats) => toMatch({ mode, seats, terms, rows }))]);
    });
    made += ended.filter(isMade).length;
    // A damaged or ended ticket is gone from the queue now, so the tickets behind it may match.
    if (ended.length < wanted && ended.every(isMade)) break;
  }
  return { made };
}

export interface ProposalBatch {
  readonly mode: string;
  readonly proposals: readonly Proposal[];
  readonly terms: MatchTerms;
}

export async function commitProposals({ db, end }: MatchingDeps, batch: ProposalBatch): Promise<{ made: number }> {
  const { mode, proposals, terms } = batch;
  let made = 0;
  for (let first = 0; first < proposals.length; first += matchesPerBatchMax) {
    const some = proposals.slice(first, first + matchesPerBatchMax);
    const ended = await ticketEndTransaction(db, async (tx) => {
      const rows = await sql.lockTickets(tx, [...new Set(some.flatMap(ticketIds))]);
      const { tickets, damaged } = parseRows(rows.filter((row) => row.mode === mode && !row.is_expired));
      const free = new Map(tickets.map((ticket) => [ticket.ticketId, ticket]));
      const matches = some.flatMap((proposal) => {
        const seats = takeSeats(proposal, free);
        return seats ? [toMatch({ mode, seats, terms, rows, region: proposal.region })] : [];
      });
      return end(tx, [...damaged, ...matches]);
    });
    made += ended.filter(isMade).length;
  }
  return { made };
}

const isMade = ({ end, result }: RecordedEnd): boolean => end.kind === "match" && result.kind === "recorded";

const ticketIds = ({ seats }: Proposal): string[] => seats.map(({ ticketId }) => ticketId);

function parseRows(rows: readonly TicketRow[]): { tickets: OpenTicket[]; damaged: Damaged[] } {
  const parsed = rows.map(parseRow);
  return { tickets: parsed.filter(isTicket), damaged: parsed.filter(isDamaged) };
}

/** Removes all tickets of the proposal from `free`; or none, if one is missing or named twice. */
function takeSeats(proposal: Proposal, free: Map<string, OpenTicket>): Seat[] | undefined {
  const ids = ticketIds(proposal);
  if (ids.length === 0 || new Set(ids).size < ids.length) return undefined;
  const seats = proposal.seats.flatMap(({ ticketId, team }) => {
    const ticket = free.get(ticketId);
    return ticket ? [{ ticket, team }] : [];
  });
  if (seats.length < ids.length) return undefined;
  for (const id of ids) free.delete(id);
  return seats;
}

interface NewMatch {
  readonly mode: string;
  readonly seats: readonly Seat[];
  readonly terms: MatchTerms;
  readonly region?: string | undefined;
  /** The rows of the tickets. The match is made at the time of this read, when none of them was expired. */
  readonly rows: readonly TicketRow[];
}

function toMatch({ mode, seats, terms, region, rows }: NewMatch): TicketEnd {
  const matchedAt = rows[0]?.now ?? 0;
  const where = region === undefined ? {} : { region };
  return { kind: "match", match: { ...terms, ...where, matchId: randomUUIDv7(), mode, matchedAt, seats } };
}
