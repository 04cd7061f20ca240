/** The statements that record how tickets ended: `matches`, `ticket_ends` and `damaged_tickets`. */
import { type Db, runStatement, type Tx, toStorableText } from "@todoke/kernel/db";
import type { ExpiryReason, Match, OpenTicket, TicketEnd } from "../queue/ticket.ts";

export type EndStatus = "MATCHED" | "CANCELLED" | "EXPIRED";

export interface RecordedEndRow {
  readonly ticket_id: string;
  readonly status: EndStatus;
  readonly match_id: string | null;
}

/** Times are milliseconds since 1970. */
export interface EndRow extends RecordedEndRow {
  readonly mode: string;
  readonly user_id: string;
  readonly reason: ExpiryReason | null;
  readonly team: number | null;
  readonly party_size: number;
  readonly attributes: object;
  readonly joined_at: number;
  readonly expires_at: number;
  readonly ended_at: number;
}

type Damaged = Extract<TicketEnd, { kind: "damaged" }>;

/** One row for each ticket of the end; none for a damaged one. */
export function toEndRows(end: TicketEnd): EndRow[] {
  if (end.kind === "damaged") return [];
  if (end.kind === "match") {
    const { matchId, matchedAt, seats } = end.match;
    const matched = { status: "MATCHED", match_id: matchId, reason: null, ended_at: matchedAt } as const;
    return seats.map(({ ticket, team }) => ({ ...ticketColumns(ticket), ...matched, team }));
  }
  const ended = { ...ticketColumns(end.ticket), match_id: null, team: null, ended_at: end.endedAt };
  if (end.kind === "expired") return [{ ...ended, status: "EXPIRED", reason: end.reason }];
  return [{ ...ended, status: "CANCELLED", reason: null }];
}

const ticketColumns = (ticket: OpenTicket) => ({
  ticket_id: ticket.ticketId,
  mode: ticket.mode,
  user_id: ticket.userId,
  party_size: ticket.partySize,
  attributes: ticket.attributes,
  joined_at: ticket.joinedAt,
  expires_at: ticket.expiresAt,
});

/** One index probe per ticket, with any statistics. */
export const recordedEndsSql = `
select e.* from unnest($1::text[]) as i(ticket_id)
 cross join lateral (select e.ticket_id, e.status, e.match_id from ticket_ends e
                      where e.ticket_id = i.ticket_id limit 1) e`;

/** The recorded ends of these tickets, by ticket ID. */
export async function selectRecordedEnds(tx: Tx, ends: readonly EndRow[]): Promise<Map<string, RecordedEndRow>> {
  const values = [ends.map((end) => end.ticket_id)];
  const { rows } = await tx.query<RecordedEndRow>({ name: "recorded ends", text: recordedEndsSql, values });
  return new Map(rows.map((row) => [row.ticket_id, row]));
}

const time = (ms: string) => `to_timestamp(${ms} / 1000)`;

/**
 * Inserts in key order, so that two processes that write the same ends wait for each other and cannot deadlock. A damaged
 * ticket that is quarantined already is left alone, because a queue may return it twice.
 */
const insertEndsSql = `
with insert_matches as (
  insert into matches (match_id, mode, region, session, rules_version, matched_at)
  select match_id, mode, region, session, rules_version, ${time("matched_at")}
    from jsonb_to_recordset($1::jsonb) as m(match_id uuid, mode text, region text, session jsonb, rules_version text,
                                            matched_at float8)
   order by match_id
),
insert_ends as (
  insert into ticket_ends (ticket_id, mode, user_id, status, reason, match_id, team, party_size, attributes,
                           joined_at, expires_at, ended_at)
  select ticket_id, mode, user_id, status, reason, match_id, team, party_size, attributes,
         ${time("joined_at")}, ${time("expires_at")}, ${time("ended_at")}
    from jsonb_to_recordset($2::jsonb) as e(ticket_id text, mode text, user_id text, status text, reason text,
                                            match_id uuid, team int, party_size int, attributes jsonb,
                                            joined_at float8, expires_at float8, ended_at float8)
   order by ticket_id
)
insert into damaged_tickets (ticket_id, mode, raw, why, ended_at)
select ticket_id, mode, raw, why, ${time("ended_at")}
  from jsonb_to_recordset($3::jsonb) as d(ticket_id text, mode text, raw text, why text, ended_at float8)
 order by ticket_id, mode
on conflict do nothing`;

export interface NewEnds {
  readonly matches: readonly Match[];
  readonly ends: readonly EndRow[];
  readonly damaged: readonly Damaged[];
}

export async function insertEnds(tx: Tx, { matches, ends, damaged }: NewEnds): Promise<void> {
  const values = [matches.map(matchColumns), ends, damaged.map(damagedColumns)].map((rows) => JSON.stringify(rows));
  await tx.query({ name: "insert ends", text: insertEndsSql, values });
}

export interface LostTicket {
  readonly ticketId: string;
  readonly mode: string;
  readonly userId: string;
}

const insertLostSql = `
insert into ticket_ends
  (ticket_id, mode, user_id, status, reason, party_size, attributes, joined_at, expires_at, ended_at)
values ($1, $2, $3, 'EXPIRED', 'lost', 1, '{}', now(), now(), now())
on conflict (ticket_id) do nothing`;

/** The ticket's data is lost, so the row describes a single player who joined now. */
export async function insertLost(db: Db, { ticketId, mode, userId }: LostTicket): Promise<void> {
  await runStatement(db, { name: "insert lost", text: insertLostSql, values: [ticketId, mode, userId] });
}

const matchColumns = ({ matchId, mode, region, session, rulesVersion, matchedAt }: Match) => ({
  match_id: matchId,
  mode,
  region: region ?? null,
  session,
  rules_version: rulesVersion,
  matched_at: matchedAt,
});

/** Damaged data may contain anything. */
const damagedColumns = ({ ticketId, mode, raw, why, endedAt }: Damaged) => ({
  ticket_id: toStorableText(ticketId, 200),
  mode: toStorableText(mode, 200),
  raw: toStorableText(raw, 10_000),
  why: toStorableText(why, 1_000),
  ended_at: endedAt,
});
