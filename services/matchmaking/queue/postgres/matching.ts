/** How matches are made of tickets in PostgreSQL: in the order of waiting, or as proposed; each whole or not at all. */
import { randomUUIDv7 } from "node:crypto";
import type { Db, Tx } from "@todoke/kernel/db";
import { endingTickets, type RecordedEnd } from "../../store/ends.ts";
import type { MatchTerms, OpenTicket, Seat, TicketEnd } from "../../tickets.ts";
import type { InOrder, Proposal } from "../index.ts";
import { type Damaged, isDamaged, isTicket, readRow, type TicketRow } from "./rows.ts";
import * as sql from "./statements.ts";

export interface Ending {
  readonly db: Db;
  readonly end: (tx: Tx, ends: readonly TicketEnd[]) => Promise<readonly RecordedEnd[]>;
}

// One transaction makes so many at the most: whoever cancels one of the tickets waits for it.
const matchesAtOnceMax = 100;
const ticketsAtOnceMax = 1_000;
// Transactions of one call; the next call goes on.
const roundsMax = 50;

export async function matchInOrder({ db, end }: Ending, mode: string, round: InOrder): Promise<{ made: number }> {
  const { players, matchesMax, ...terms } = round;
  const atOnceMax = Math.max(1, Math.min(matchesAtOnceMax, Math.floor(ticketsAtOnceMax / players)));
  let made = 0;
  for (let rounds = 0; rounds < roundsMax && made < matchesMax; rounds++) {
    const wanted = Math.min(atOnceMax, matchesMax - made);
    const ended = await endingTickets(db, async (tx) => {
      await sql.lockMode(tx, mode);
      const rows = await sql.lockLongest(tx, mode, wanted * players);
      const { tickets, damaged } = sorted(rows);
      const tables = Array.from({ length: Math.floor(tickets.length / players) }, (_, n) =>
        tickets.slice(n * players, (n + 1) * players).map((ticket, place) => ({ ticket, team: place + 1 })),
      );
      return end(tx, [...damaged, ...tables.map((seats) => matchOf({ mode, seats, terms, rows }))]);
    });
    made += ended.filter(isMade).length;
    // What was no ticket, or had ended, is out of the way now: those behind it may be matched.
    if (ended.length < wanted && ended.every(isMade)) break;
  }
  return { made };
}

export interface Settling {
  readonly mode: string;
  readonly proposals: readonly Proposal[];
  readonly terms: MatchTerms;
}

export async function settle({ db, end }: Ending, { mode, proposals, terms }: Settling): Promise<{ made: number }> {
  let made = 0;
  for (let first = 0; first < proposals.length; first += matchesAtOnceMax) {
    const some = proposals.slice(first, first + matchesAtOnceMax);
    const ended = await endingTickets(db, async (tx) => {
      const rows = await sql.lockTickets(tx, [...new Set(some.flatMap(idsOf))]);
      const { tickets, damaged } = sorted(rows.filter((row) => row.mode === mode && !row.is_over));
      const free = new Map(tickets.map((ticket) => [ticket.ticketId, ticket]));
      const matches = some.flatMap((proposal) => {
        const seats = takeSeats(proposal, free);
        return seats ? [matchOf({ mode, seats, terms, rows, region: proposal.region })] : [];
      });
      return end(tx, [...damaged, ...matches]);
    });
    made += ended.filter(isMade).length;
  }
  return { made };
}

const isMade = ({ end, recorded }: RecordedEnd): boolean => end.kind === "match" && recorded.kind === "recorded";

const idsOf = ({ seats }: Proposal): string[] => seats.map(({ ticketId }) => ticketId);

function sorted(rows: readonly TicketRow[]): { tickets: OpenTicket[]; damaged: Damaged[] } {
  const reads = rows.map(readRow);
  return { tickets: reads.filter(isTicket), damaged: reads.filter(isDamaged) };
}

/** All of its tickets, which nobody else can have then; none, where one is gone or is named twice. */
function takeSeats(proposal: Proposal, free: Map<string, OpenTicket>): Seat[] | undefined {
  const ids = idsOf(proposal);
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
  /** What the tickets were read from: the match is made at that moment, at which none of them was over. */
  readonly rows: readonly TicketRow[];
}

function matchOf({ mode, seats, terms, region, rows }: NewMatch): TicketEnd {
  const matchedAt = rows[0]?.now ?? 0;
  const where = region === undefined ? {} : { region };
  return { kind: "match", match: { ...terms, ...where, matchId: randomUUIDv7(), mode, matchedAt, seats } };
}
