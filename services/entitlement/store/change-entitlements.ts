/** The one statement behind every grant and revoke. */
import { type Db, statement, utcText } from "@todoke/kernel/db";
import type { Answer } from "@todoke/kernel/idempotency";

export interface ChangeRow {
  readonly scope: string;
  readonly idem_key: string;
  readonly request_hash: string; // hex
  readonly caller: string;
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly status: "ACTIVE" | "REVOKED";
  readonly source: string;
  readonly source_id: string;
  readonly expires_at: string | null;
  readonly event_id: string;
  readonly event_type: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** `conflict`: the key was first sent with another body. `too_late`: it would have run out already. Nothing was done. */
export type ChangeResult = Answer & { readonly result: "first" | "replayed" | "conflict" | "too_late" };

const contentType = "application/json; charset=utf-8";

/**
 * `known` are keys that have an answer, perhaps one that is forgotten by now. Of the `unseen`, those that would have run
 * out already are refused, and the rest is carried out. A key that another process is writing at this moment is met by the
 * unique index: the whole statement fails with 23505, and the batch is run again request by request. The look-up of keys
 * is a LATERAL … LIMIT 1, so that it stays an index probe whatever the planner believes of the table.
 */
export const text = `
with input as materialized (
  select * from rows from (jsonb_to_recordset($1::jsonb) as (
           scope text, idem_key text, request_hash text, caller text, user_id text, stock_keeping_unit text,
           status text, source text, source_id text, expires_at timestamptz, event_id uuid, event_type text, headers jsonb))
         with ordinality as i(scope, idem_key, request_hash, caller, user_id, stock_keeping_unit,
                              status, source, source_id, expires_at, event_id, event_type, headers, place)
),
known as materialized (
  select i.place, k.*, k.request_hash = decode(i.request_hash, 'hex') as same_request
    from input i cross join lateral (
           select k.ctid as key_row, k.expires_at <= statement_timestamp() as forgotten, k.request_hash,
                  k.response_status, k.response_content_type, k.response_body
             from idempotency_keys k where k.scope = i.scope and k.idem_key = i.idem_key limit 1) k
),
unseen as materialized (select *, coalesce(expires_at <= now(), false) as too_late
                          from input where place not in (select place from known where not forgotten)),
fresh as materialized (select * from unseen where not too_late),
expired as (
  delete from idempotency_keys where ctid = any(array(select key_row from known where forgotten)) returning scope
),
changed as (
  insert into entitlements as e (user_id, stock_keeping_unit, status, source, source_id, expires_at)
  select user_id, stock_keeping_unit, status, source, source_id, expires_at from fresh order by user_id, stock_keeping_unit
  on conflict (user_id, stock_keeping_unit) do update
     set status = excluded.status, source = excluded.source, source_id = excluded.source_id,
         expires_at = excluded.expires_at, version = e.version + 1, updated_at = now()
  returning e.user_id, e.stock_keeping_unit, e.version, e.updated_at
),
told as materialized (
  select f.*, c.version, c.updated_at, case c.version when 1 then 201 else 200 end as response_status,
         convert_to('{"user_id":' || to_json(f.user_id) || ',"stock_keeping_unit":' || to_json(f.stock_keeping_unit)
           || ',"status":"' || f.status || '","version":' || c.version || ',"updated_at":"' || c.updated_at || '"'
           || coalesce(',"expires_at":"' || ${utcText("f.expires_at")} || '"', '') || '}', 'utf8')
           as response_body
    from fresh f
    join (select user_id, stock_keeping_unit, version, ${utcText("updated_at")} as updated_at from changed) c
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
audited as (
  insert into entitlement_audit (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
  select user_id, stock_keeping_unit, version, case status when 'ACTIVE' then 'GRANT' else 'REVOKE' end,
         source, source_id, caller, event_id
    from told
),
answered as (
  insert into idempotency_keys
    (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
  select scope, idem_key, decode(request_hash, 'hex'), response_status, '${contentType}', response_body,
         now() + interval '24 hours'
    from told where (select count(*) from expired) >= 0 -- the old keys go first
   order by scope, idem_key
)
select t.place::int, 'first' as result, t.response_status as status, '${contentType}' as "contentType",
       t.response_body as body, false as replayed
  from told t
union all
select s.place::int, case when s.same_request then 'replayed' else 'conflict' end,
       s.response_status, s.response_content_type, s.response_body, true
  from known s where not s.forgotten
union all
select u.place::int, 'too_late', null, null, null, false from unseen u where u.too_late
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
