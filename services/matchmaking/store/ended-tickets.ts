/** Reads of how tickets ended. */
import type { Queryable } from "@todoke/kernel/db";
import type { Attributes, ExpiryReason } from "../tickets.ts";
import type { EndStatus } from "./end-rows.ts";

/** Times are milliseconds since 1970. */
export interface EndedTicket {
  readonly ticketId: string;
  readonly mode: string;
  readonly userId: string;
  readonly partySize: number;
  readonly attributes: Attributes;
  readonly joinedAt: number;
  readonly expiresAt: number;
  readonly endedAt: number;
  readonly status: EndStatus;
  /** Of one that is EXPIRED. */
  readonly reason?: ExpiryReason;
  /** Of one that is MATCHED. */
  readonly match?: EndedMatch;
}

interface EndedMatch {
  readonly matchId: string;
  readonly team: number;
  readonly region?: string;
  readonly session: Readonly<Record<string, unknown>>;
  /** The other tickets of the match: by team, and within it by how long they had waited. */
  readonly peers: readonly { readonly userId: string; readonly team: number; readonly partySize: number }[];
}

const ms = (time: string) => `(extract(epoch from ${time}) * 1000)::float8`;

// As many as one answer should ever tell of.
const peersMax = 1_000;

/**
 * Peers are asked for in the order of the one index that finds them, and with "between", for which that order counts. A
 * planner that believes the table empty would take any index else, and read all of it from then on.
 */
export const endText = `
select e.ticket_id as "ticketId", e.mode, e.user_id as "userId", e.party_size as "partySize", e.attributes,
       ${ms("e.joined_at")} as "joinedAt", ${ms("e.expires_at")} as "expiresAt", ${ms("e.ended_at")} as "endedAt",
       e.status, e.reason, m.match
  from ticket_ends e
  left join lateral (
         select jsonb_strip_nulls(jsonb_build_object('matchId', m.match_id, 'team', e.team, 'region', m.region))
                || jsonb_build_object('session', m.session, 'peers', coalesce(
                     (select jsonb_agg(jsonb_build_object('userId', p.user_id, 'team', p.team, 'partySize', p.party_size)
                                       order by p.team, p.joined_at, p.ticket_id)
                        from (select * from ticket_ends p where p.match_id between e.match_id and e.match_id
                               order by p.match_id, p.user_id limit ${peersMax}) p
                       where p.ticket_id <> e.ticket_id), '[]')) as match
           from matches m where m.match_id = e.match_id limit 1) m on true
 where e.ticket_id = $1`;

export async function selectTicketEnd(db: Queryable, ticketId: string): Promise<EndedTicket | undefined> {
  type Row = Omit<EndedTicket, "reason" | "match"> & { reason: ExpiryReason | null; match: EndedMatch | null };
  const { rows } = await db.query<Row>({ name: "ticket end", text: endText, values: [ticketId] });
  if (!rows[0]) return undefined;
  const { reason, match, ...end } = rows[0];
  return { ...end, ...(reason !== null && { reason }), ...(match !== null && { match }) };
}

export interface Met {
  readonly mode: string;
  readonly userId: string;
  readonly withinMs: number;
}

// Whoever meets more than this within the time cannot be spared all of them.
const opponentsMax = 100;

/**
 * Among the user's last matches, in whatever mode. Tickets that ended otherwise do not count: a player could push real opponents
 * out with tickets that are joined and cancelled. See also the note on peers.
 */
export const opponentsText = `
select distinct p.user_id as "userId"
  from (select e.match_id, e.mode, e.ended_at from ticket_ends e
         where e.user_id = $1 and e.match_id is not null order by e.ended_at desc limit ${opponentsMax}) e
 cross join lateral (select p.user_id from ticket_ends p where p.match_id between e.match_id and e.match_id
                      order by p.match_id, p.user_id limit ${opponentsMax}) p
 where e.mode = $2 and e.ended_at > now() - $3::float8 * interval '1 millisecond' and p.user_id <> $1
 limit ${opponentsMax}`;

/** Whom the user has met in the mode lately. */
export async function selectLastOpponents(db: Queryable, { mode, userId, withinMs }: Met): Promise<readonly string[]> {
  const values = [userId, mode, withinMs];
  const { rows } = await db.query<{ userId: string }>({ name: "last opponents", text: opponentsText, values });
  return rows.map((row) => row.userId);
}

/** How long tickets waited for their match. */
export interface Waits {
  /** How many the figures rest on. Without any, there are none. */
  readonly matched: number;
  readonly p50Ms?: number;
  readonly p90Ms?: number;
  readonly p99Ms?: number;
}

// As many as make a 99th percentile worth its name, of a time that players would still call now.
const waitsMax = 1_000;

export const waitsText = `
select count(*)::int as matched,
       percentile_cont(array[0.5, 0.9, 0.99]) within group (order by extract(epoch from waited)::float8 * 1000) as waits
  from (select waited from ticket_ends
         where mode = $1 and status = 'MATCHED' and ended_at > now() - interval '1 hour'
         order by ended_at desc limit ${waitsMax}) w`;

/** Of the last thousand tickets that were matched in the mode, within the last hour. */
export async function selectWaits(db: Queryable, mode: string): Promise<Waits> {
  type Row = { matched: number; waits: [number, number, number] | null };
  const { rows } = await db.query<Row>({ name: "waits", text: waitsText, values: [mode] });
  const { matched, waits } = rows[0] as Row;
  if (!waits) return { matched };
  const [p50Ms = 0, p90Ms = 0, p99Ms = 0] = waits.map(Math.round);
  return { matched, p50Ms, p90Ms, p99Ms };
}
