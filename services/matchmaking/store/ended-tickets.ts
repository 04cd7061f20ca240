/** Reads of ended tickets. */
import type { Queryable } from "@todoke/kernel/db";
import type { ExpiryReason, OpenTicket } from "../queue/ticket.ts";
import type { EndStatus } from "./ends.ts";

/** Times are milliseconds since 1970. */
export interface EndedTicket extends Omit<OpenTicket, "avoid" | "aliveUntil"> {
  readonly endedAt: number;
  readonly status: EndStatus;
  /** Only if EXPIRED. */
  readonly reason?: ExpiryReason;
  /** Only if MATCHED. */
  readonly match?: EndedMatch;
}

interface EndedMatch {
  readonly matchId: string;
  readonly team: number;
  readonly region?: string;
  readonly session: Readonly<Record<string, unknown>>;
  /** The other tickets of the match, by team and then by join time. */
  readonly peers: readonly { readonly userId: string; readonly team: number; readonly partySize: number }[];
}

const ms = (time: string) => `(extract(epoch from ${time}) * 1000)::float8`;

// Bounds the response.
const peersMax = 1_000;

/**
 * The subquery of peers is ordered as the index that serves it, and says "between" instead of "=" so that this order counts.
 * Else a planner that believes the table empty would cache a plan with another index, which reads the whole table later.
 */
const endedTicketSql = (where: string) => `
select e.ticket_id as "ticketId", e.mode, e.user_id as "userId", e.party_size as "partySize", e.attributes,
       ${ms("e.joined_at")} as "joinedAt", ${ms("e.expires_at")} as "expiresAt", ${ms("e.ended_at")} as "endedAt",
       e.status, e.reason, m.match
  from (select * from ticket_ends e where ${where}) e
  left join lateral (
         select jsonb_strip_nulls(jsonb_build_object('matchId', m.match_id, 'team', e.team, 'region', m.region))
                || jsonb_build_object('session', m.session, 'peers', coalesce(
                     (select jsonb_agg(jsonb_build_object('userId', p.user_id, 'team', p.team, 'partySize', p.party_size)
                                       order by p.team, p.joined_at, p.ticket_id)
                        from (select * from ticket_ends p where p.match_id between e.match_id and e.match_id
                               order by p.match_id, p.user_id limit ${peersMax}) p
                       where p.ticket_id <> e.ticket_id), '[]')) as match
           from matches m where m.match_id = e.match_id limit 1) m on true`;

async function selectEnded(db: Queryable, name: string, text: string, values: unknown[]): Promise<EndedTicket[]> {
  type Row = Omit<EndedTicket, "reason" | "match"> & { reason: ExpiryReason | null; match: EndedMatch | null };
  const { rows } = await db.query<Row>({ name, text, values });
  return rows.map(({ reason, match, ...end }) => ({
    ...end,
    ...(reason !== null && { reason }),
    ...(match !== null && { match }),
  }));
}

export const ticketEndSql = endedTicketSql(`e.ticket_id = $1`);

export const selectTicketEnd = async (db: Queryable, ticketId: string): Promise<EndedTicket | undefined> =>
  (await selectEnded(db, "ticket end", ticketEndSql, [ticketId]))[0];

export const lastMatchesSql = `
select last.* from unnest($1::text[]) as one(user_id)
 cross join lateral (${endedTicketSql(`e.user_id = one.user_id and e.match_id is not null order by e.ended_at desc limit 1`)}) last`;

/** The ticket of each user's latest match, in any mode; null for a user without one. */
export async function selectLastMatches(db: Queryable, userIds: readonly string[]): Promise<(EndedTicket | null)[]> {
  const found = new Map(
    (await selectEnded(db, "last matches", lastMatchesSql, [userIds])).map((end) => [end.userId, end]),
  );
  return userIds.map((userId) => found.get(userId) ?? null);
}

/** A position in a user's list: microseconds since 1970, and the ticket ID. */
export interface TicketPosition {
  readonly joinedAtMicros: string;
  readonly ticketId: string;
}

const latest: TicketPosition = { joinedAtMicros: String(Number.MAX_SAFE_INTEGER), ticketId: "" };

export const userTicketEndsSql = `${endedTicketSql(
  `e.user_id = $1 and (e.joined_at, e.ticket_id collate "C") < ('epoch'::timestamptz + $2 * interval '1 microsecond', $3)
    order by e.joined_at desc, e.ticket_id collate "C" desc limit $4`,
)} order by e.joined_at desc, e.ticket_id collate "C" desc`;

/** The user's ended tickets in any mode, the last joined first. A ticket's position never changes. */
export const selectUserTicketEnds = (
  db: Queryable,
  { userId, before = latest, limit }: { userId: string; before?: TicketPosition | undefined; limit: number },
): Promise<EndedTicket[]> =>
  selectEnded(db, "user ticket ends", userTicketEndsSql, [userId, before.joinedAtMicros, before.ticketId, limit]);

export interface OpponentQuery {
  readonly mode: string;
  readonly userId: string;
  readonly withinMs: number;
}

// A user with more opponents than this may meet some of them again.
const opponentsMax = 100;

/**
 * Reads the user's last matches of all modes. Other ends do not count: a player could push real opponents out of the limit by
 * joining and cancelling. On "between" see `ticketEndSql`.
 */
export const lastOpponentsSql = `
select distinct p.user_id as "userId"
  from (select e.match_id, e.mode, e.ended_at from ticket_ends e
         where e.user_id = $1 and e.match_id is not null order by e.ended_at desc limit ${opponentsMax}) e
 cross join lateral (select p.user_id from ticket_ends p where p.match_id between e.match_id and e.match_id
                      order by p.match_id, p.user_id limit ${opponentsMax}) p
 where e.mode = $2 and e.ended_at > now() - $3::float8 * interval '1 millisecond' and p.user_id <> $1
 limit ${opponentsMax}`;

/** The users whom this user has met in the mode within the time. */
export async function selectLastOpponents(
  db: Queryable,
  { mode, userId, withinMs }: OpponentQuery,
): Promise<readonly string[]> {
  const values = [userId, mode, withinMs];
  const { rows } = await db.query<{ userId: string }>({ name: "last opponents", text: lastOpponentsSql, values });
  return rows.map((row) => row.userId);
}

/** Times that tickets waited for their match. */
export interface Waits {
  /** How many tickets the percentiles are from; without any, there are no percentiles. */
  readonly matched: number;
  readonly p50Ms?: number;
  readonly p90Ms?: number;
  readonly p99Ms?: number;
}

// Enough for a 99th percentile, and few enough to be recent.
const waitsMax = 1_000;

export const waitsSql = `
select count(*)::int as matched,
       percentile_cont(array[0.5, 0.9, 0.99]) within group (order by extract(epoch from waited)::float8 * 1000) as waits
  from (select waited from ticket_ends
         where mode = $1 and status = 'MATCHED' and ended_at > now() - interval '1 hour'
         order by ended_at desc limit ${waitsMax}) w`;

/** From the last thousand tickets that were matched in the mode within the last hour. */
export async function selectWaits(db: Queryable, mode: string): Promise<Waits> {
  type Row = { matched: number; waits: [number, number, number] | null };
  const { rows } = await db.query<Row>({ name: "waits", text: waitsSql, values: [mode] });
  const { matched, waits } = rows[0] as Row;
  if (!waits) return { matched };
  const [p50Ms = 0, p90Ms = 0, p99Ms = 0] = waits.map(Math.round);
  return { matched, p50Ms, p90Ms, p99Ms };
}
