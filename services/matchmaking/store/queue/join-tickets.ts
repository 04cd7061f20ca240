/** The statement behind every join. */
import type { Db } from "@todoke/kernel/db";
import { type CommandResult, command, type KeyColumns } from "@todoke/kernel/idempotency";

export interface JoinRow extends KeyColumns {
  /** The ID of the new ticket, if one is created. */
  readonly ticket_id: string;
  readonly mode: string;
  readonly user_id: string;
  readonly party_size: number;
  readonly attributes: object;
  readonly avoid: readonly string[];
  readonly ticket_ms: number;
  readonly heartbeat_ms: number | null;
}

/**
 * `different`: the user's open ticket has another party size or other attributes. `expired`: it is expired and not ended
 * yet. `detail` is the ID of that ticket. A first or replayed join has status 201 if the ticket was new, and a `JoinedBody`.
 */
export type JoinResult = CommandResult<"different" | "expired">;

/** Stored with the key; the command builds its response from it. */
export interface JoinedBody {
  readonly ticket_id: string;
  /** Milliseconds since 1970. */
  readonly expires_at: number;
}

/**
 * A new request gets the ticket that the user has in the mode, or a new one, in input order. `mode || ''` keeps the planner
 * from the indexes that begin with the mode: the open ticket is found by user.
 */
const join = command<JoinRow, "different" | "expired">({
  name: "join tickets",
  columns: `ticket_id text, mode text, user_id text, party_size int, attributes jsonb, avoid text[], ticket_ms float8,
    heartbeat_ms float8`,
  lookup: {
    select: "date_trunc('milliseconds', statement_timestamp()) as joined_at, t.*",
    join: `left join lateral (
           select t.ticket_id as open_id, t.expires_at as open_until, t.alive_until <= statement_timestamp() as is_expired,
                  t.party_size = r.party_size and t.attributes = r.attributes as is_same
             from tickets t where t.user_id = r.user_id and t.mode || '' = r.mode limit 1) t on true`,
  },
  refusals: { expired: "is_expired", different: "not is_same" },
  refusalDetail: "open_id",
  change: `
insert_tickets as (
  insert into tickets (ticket_id, mode, user_id, party_size, attributes, avoid, joined_at, expires_at, alive_until)
  select ticket_id, mode, user_id, party_size, attributes, avoid, joined_at,
         joined_at + ticket_ms * interval '1 millisecond',
         joined_at + least(ticket_ms, heartbeat_ms) * interval '1 millisecond'
    from accepted where open_id is null order by ordinal
),
results as materialized (
  select *, case when open_id is null then 201 else 200 end as response_status,
         convert_to(jsonb_build_object('ticket_id', coalesce(open_id, ticket_id), 'expires_at', (extract(epoch from
           coalesce(open_until, joined_at + ticket_ms * interval '1 millisecond')) * 1000)::float8)::text, 'utf8')
           as response_body
    from accepted
)`,
});

export const joinSql = join.sql;

/** Returns the result of each join, in input order. No two rows may share a key, or a user and mode. */
export const joinTickets = (db: Db, rows: readonly JoinRow[]): Promise<readonly JoinResult[]> => join.run(db, rows);
