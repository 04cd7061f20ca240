/** The one statement behind every join. */
import { type Db, statement } from "@todoke/kernel/db";

export interface JoinRow {
  readonly scope: string;
  readonly idem_key: string;
  readonly request_hash: string; // hex
  /** Of the ticket that will wait, if one has to. */
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
 * `conflict`: the key was first sent with another wish. `other`: the user's open ticket has another wish. `over`: it is one
 * that nobody has ended yet, though its time is up. Of these three nothing was done.
 */
export type JoinResult =
  | {
      readonly result: "new" | "open";
      readonly ticket_id: string;
      readonly expires_at: number;
      readonly replayed: boolean;
    }
  | { readonly result: "conflict" }
  | { readonly result: "other"; readonly ticket_id: string }
  | { readonly result: "over"; readonly ticket_id: string };

/**
 * `known` are keys that have an answer, perhaps one that is forgotten by now. Whoever is `unseen` is given the ticket that
 * waits for them already, or a new one, in the order in which they came. A key or a user that another process writes at
 * this moment is met by a unique index: the whole statement fails with 23505, and the batch is run again wish by wish. The
 * look-ups are LATERAL … LIMIT 1, so that they stay index probes whatever the planner believes of the tables; and a user's
 * ticket is found by the user, in words that the indexes which begin with the mode have no answer to.
 *
 * What is kept with the key is what the port answers; the edge makes the same bytes of it every time.
 */
export const joinText = `
with input as materialized (
  select *, date_trunc('milliseconds', statement_timestamp()) as joined_at
    from rows from (jsonb_to_recordset($1::jsonb) as (
           scope text, idem_key text, request_hash text, ticket_id text, mode text, user_id text, party_size int,
           attributes jsonb, avoid text[], ticket_ms float8, heartbeat_ms float8))
         with ordinality as i(scope, idem_key, request_hash, ticket_id, mode, user_id, party_size,
                              attributes, avoid, ticket_ms, heartbeat_ms, place)
),
known as materialized (
  select i.place, k.*, k.request_hash = decode(i.request_hash, 'hex') as same_wish
    from input i cross join lateral (
           select k.ctid as key_row, k.expires_at <= statement_timestamp() as forgotten, k.request_hash,
                  k.response_status, k.response_body
             from idempotency_keys k where k.scope = i.scope and k.idem_key = i.idem_key limit 1) k
),
unseen as materialized (
  select i.*, t.open_id, t.open_until, t.is_over, t.same_wish
    from input i left join lateral (
           select t.ticket_id as open_id, t.expires_at as open_until, t.alive_until <= statement_timestamp() as is_over,
                  t.party_size = i.party_size and t.attributes = i.attributes as same_wish
             from tickets t where t.user_id = i.user_id and t.mode || '' = i.mode limit 1) t on true
   where i.place not in (select place from known where not forgotten)
),
expired as (
  delete from idempotency_keys where ctid = any(array(select key_row from known where forgotten)) returning scope
),
queued as (
  insert into tickets (ticket_id, mode, user_id, party_size, attributes, avoid, joined_at, expires_at, alive_until)
  select ticket_id, mode, user_id, party_size, attributes, avoid, joined_at,
         joined_at + ticket_ms * interval '1 millisecond',
         joined_at + least(ticket_ms, heartbeat_ms) * interval '1 millisecond'
    from unseen where open_id is null order by place
  returning ticket_id, expires_at
),
given as materialized (
  select u.place, u.scope, u.idem_key, u.request_hash, 'new' as result, 201 as response_status, q.ticket_id, q.expires_at
    from unseen u join queued q on q.ticket_id = u.ticket_id
   union all
  select place, scope, idem_key, request_hash, 'open', 200, open_id, open_until
    from unseen where same_wish and not is_over
),
told as materialized (select *, (extract(epoch from expires_at) * 1000)::float8 as until_ms from given),
kept as (
  insert into idempotency_keys
    (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
  select scope, idem_key, decode(request_hash, 'hex'), response_status, 'application/json',
         convert_to(jsonb_build_object('ticket_id', ticket_id, 'expires_at', until_ms)::text, 'utf8'),
         now() + interval '24 hours'
    from told where (select count(*) from expired) >= 0 -- the old keys go first
   order by scope, idem_key
)
select place::int, result, ticket_id, until_ms as expires_at, false as replayed from told
union all
select k.place::int, case when not k.same_wish then 'conflict' when k.response_status = 201 then 'new' else 'open' end,
       a.answer ->> 'ticket_id', (a.answer ->> 'expires_at')::float8, true
  from known k cross join lateral (select convert_from(k.response_body, 'utf8')::jsonb as answer) a
 where not k.forgotten
union all
select place::int, case when is_over then 'over' else 'other' end, open_id, null, false
  from unseen where open_id is not null and (is_over or not same_wish)
order by place`;

/** Answers each wish in its place. No two may share a key, or a user and mode. */
export async function joinTickets(db: Db, rows: readonly JoinRow[]): Promise<readonly JoinResult[]> {
  const { rows: results } = await statement<JoinResult & { place: number }>(db, {
    name: "join tickets",
    text: joinText,
    values: [JSON.stringify(rows)],
  });
  return results.map(({ place: _, ...result }) => result);
}
