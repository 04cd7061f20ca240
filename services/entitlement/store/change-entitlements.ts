/** The one statement behind every grant and revoke. */
import { type Db, statement } from "@todoke/kernel/db";
import type { Answer } from "@todoke/kernel/idempotency";

export interface ChangeRow {
  readonly scope: string;
  readonly idem_key: string;
  readonly request_hash: string; // hex
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly status: "ACTIVE" | "REVOKED";
  readonly source: string;
  readonly source_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ChangeResult extends Answer {
  /** False: the key was first sent with another body, and nothing was done. */
  readonly sameRequest: boolean;
}

const contentType = "application/json; charset=utf-8";
const utc = (time: string) => `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/**
 * `seen` are keys that have an answer; the others are carried out. A key that another process is writing at this moment
 * is met by the unique index: the whole statement fails with 23505, and the batch is run again request by request.
 * The look-up of keys is a LATERAL … LIMIT 1, so that it stays an index probe whatever the planner believes of the table.
 */
const text = `
with input as materialized (
  select * from rows from (jsonb_to_recordset($1::jsonb) as (
           scope text, idem_key text, request_hash text, user_id text, stock_keeping_unit text, status text,
           source text, source_id text, event_id uuid, event_type text, headers jsonb))
         with ordinality as i(scope, idem_key, request_hash, user_id, stock_keeping_unit, status,
                              source, source_id, event_id, event_type, headers, place)
),
seen as materialized (
  select i.place, k.response_status, k.response_content_type, k.response_body,
         k.request_hash = decode(i.request_hash, 'hex') as same_request
    from input i cross join lateral (
           select * from idempotency_keys k
            where k.scope = i.scope and k.idem_key = i.idem_key and k.expires_at > statement_timestamp() limit 1) k
),
fresh as materialized (select * from input where place not in (select place from seen)),
expired as (
  delete from idempotency_keys where ctid = any(array(
    select k.ctid from fresh f cross join lateral (
             select ctid from idempotency_keys k
              where k.scope = f.scope and k.idem_key = f.idem_key and k.expires_at <= statement_timestamp() limit 1) k))
  returning scope
),
changed as (
  insert into entitlements as e (user_id, stock_keeping_unit, status, source, source_id)
  select user_id, stock_keeping_unit, status, source, source_id from fresh order by user_id, stock_keeping_unit
  on conflict (user_id, stock_keeping_unit) do update
     set status = excluded.status, source = excluded.source, source_id = excluded.source_id,
         version = e.version + 1, updated_at = now()
  returning e.user_id, e.stock_keeping_unit, e.version, e.updated_at
),
told as materialized (
  select f.*, c.version, c.updated_at, case c.version when 1 then 201 else 200 end as response_status,
         convert_to('{"user_id":' || to_json(f.user_id) || ',"stock_keeping_unit":' || to_json(f.stock_keeping_unit)
           || ',"status":"' || f.status || '","version":' || c.version || ',"updated_at":"' || c.updated_at || '"}', 'utf8')
           as response_body
    from fresh f
    join (select user_id, stock_keeping_unit, version, ${utc("updated_at")} as updated_at from changed) c
      on c.user_id = f.user_id and c.stock_keeping_unit = f.stock_keeping_unit
),
published as (
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, headers, payload)
  select event_id, event_type, 'entitlement.events', user_id || '/' || stock_keeping_unit, version, headers,
         jsonb_build_object('event_id', event_id, 'event_type', event_type, 'occurred_at', updated_at,
           'version', version::text, 'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
           'source', source, 'source_id', source_id)
         || case when headers ? 'trace_id' then jsonb_build_object('trace_id', headers -> 'trace_id') else '{}' end
    from told order by place
),
answered as (
  insert into idempotency_keys
    (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
  select scope, idem_key, decode(request_hash, 'hex'), response_status, '${contentType}', response_body,
         now() + interval '24 hours'
    from told where (select count(*) from expired) >= 0 -- the old keys go first
   order by scope, idem_key
)
select t.place::int, t.response_status as status, '${contentType}' as "contentType", t.response_body as body,
       false as replayed, true as "sameRequest"
  from told t
union all
select s.place::int, s.response_status, s.response_content_type, s.response_body, true, s.same_request from seen s
order by place`;

/** Carries the changes out and answers each in its place. No two may share a key or an entitlement. */
export async function changeEntitlements(db: Db, rows: readonly ChangeRow[]): Promise<readonly ChangeResult[]> {
  const { rows: results } = await statement<ChangeResult & { place: number }>(db, {
    name: "change entitlements",
    text,
    values: [JSON.stringify(rows)],
  });
  return results.map(({ place: _, ...result }) => result);
}
