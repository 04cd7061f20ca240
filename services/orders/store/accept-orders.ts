/** The statement that accepts orders. */
import { type Db, recordsSql, runStatement, type Tx } from "@todoke/kernel/db";
import { insertOrderEventsSql } from "./order-events.ts";
import { ordersSql } from "./outbox-orders.ts";
import { responseSql } from "./response.ts";

export interface AcceptRow {
  readonly caller: string;
  readonly idempotency_key: string;
  readonly order_id: string;
  readonly user_id: string | null;
  readonly client_order_id: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly request_digest: string;
  readonly adapter: string;
  readonly instrument: string;
  readonly side: string;
  readonly qty: string;
  readonly price: string | null;
  /** The price at which the order counts in the exposure. */
  readonly exposure_price: string | null;
  /** Why the order exceeds a limit of its instrument. */
  readonly over_limit?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly event_id: string;
}

export interface AcceptSettings {
  readonly ledgerMs: number;
  readonly keepMs: number;
  /** Over all processes; null: no limit. */
  readonly ordersPerSecond: number | null;
  /** Orders are rejected if the last reconciliation with the broker is older; null: never. */
  readonly reconciledWithinMs: number | null;
}

export type AcceptResult =
  | { readonly result: "first" | "replayed"; readonly body: Buffer }
  /** `conflict`: the key was used with another body. Nothing was changed. */
  | {
      readonly result: "conflict" | "halted" | "not_reconciled" | "order_id_used" | "over_limit" | "rate";
      readonly detail: string | null;
    };

// The limit applies per second of the clock. `counted_at` never goes back: a statement that waited for the row for more than a
// second counts its orders in the second of the statement before it.
const acceptedBefore = `case when date_trunc('second', r.counted_at)
                              = date_trunc('second', greatest(r.counted_at, (select at from clock)))
                         then r.taken else 0 end`;
const grantedNow = `greatest(0, least((select count(*) from admissible), $4::int - (${acceptedBefore})))::int`;

const columns = `caller text, idempotency_key text, order_id text, user_id text, client_order_id text, request jsonb, request_digest text,
  adapter text, instrument text, side text, qty numeric, price numeric, exposure_price numeric, over_limit text, headers jsonb, event_id uuid`;

/**
 * `existing_keys` have an order and are replayed in every trading state. Of the `new_requests` the inadmissible ones are
 * rejected; for the rest order, history (by a trigger), ledger and event are inserted.
 *
 * With a limit, all processes queue at the row of order_rate, and an order's time is the time at which it is counted there. If
 * another process inserts the same key or order_id concurrently, a unique index fails the whole statement with 23505, and the
 * batch is run again request by request. Lookups are LATERAL … LIMIT 1 or scalar, so that they stay index probes even with
 * stale statistics.
 */
export const acceptOrdersSql = `
with input as materialized (select * from ${recordsSql("$1", columns)}),
existing_keys as materialized (
  select i.ordinal, o.id, o.request_digest = i.request_digest as same_request, coalesce(l.answer, o.response) as response
    from input i
   cross join lateral (
           select o.id, o.request_digest, ${responseSql("o")} as response
             from outbox_orders o where o.caller = i.caller and o.idempotency_key = i.idempotency_key limit 1) o
    left join lateral (select l.answer from idempo_ledger l where l.order_row_id = o.id limit 1) l on true
),
count_replays as (
  update idempo_ledger l set last_seen_at = clock_timestamp(), seen_count = l.seen_count + 1
   where l.order_row_id = any(array(select id from existing_keys where same_request))
),
new_requests as materialized (
  select i.*,
         (select t.mode || ': ' || t.reason from trading_state t
           where t.scope = any(array['*', i.instrument]) and t.mode <> 'active' order by t.scope limit 1) as halted,
         (select true from outbox_orders o where o.caller = i.caller and o.order_id = i.order_id limit 1) as order_id_used,
         $5::float8 is not null and coalesce(
           (select r.last_ok_at from reconciliations r where r.adapter = i.adapter limit 1)
             < statement_timestamp() - $5::float8 * interval '1 millisecond', true) as not_reconciled
    from input i where i.ordinal not in (select ordinal from existing_keys)
),
admissible as materialized (
  select n.*, row_number() over (order by n.ordinal) as rank from new_requests n
   where n.halted is null and n.order_id_used is null and not n.not_reconciled and n.over_limit is null
),
clock as materialized (select clock_timestamp() as at),
counted as materialized (
  update order_rate r
     set counted_at = greatest(r.counted_at, (select at from clock)),
         taken = ${acceptedBefore} + ${grantedNow},
         granted = ${grantedNow}
   where r.scope = '*' and $4::int is not null and exists (select from admissible)
  returning r.counted_at, r.granted
),
accepted as materialized (
  select a.*, coalesce((select counted_at from counted), (select at from clock)) as at
    from admissible a where $4::int is null or a.rank <= (select granted from counted)
),
insert_orders as (
  insert into outbox_orders (created_at, updated_at, ${ordersSql.dueAtColumn}, caller, idempotency_key, order_id, user_id,
    client_order_id, order_request_json, request_digest, adapter, instrument, side, qty, price, exposure_price, headers,
    changed_by, expires_at)
  select at, at, at, caller, idempotency_key, order_id, user_id, client_order_id, request, request_digest, adapter,
         instrument, side, qty, price, exposure_price, headers, caller, at + $3::float8 * interval '1 millisecond'
    from accepted order by caller, idempotency_key
  returning *
),
results as materialized (
  select a.ordinal, a.event_id, o.*, ${responseSql("o")} as response
    from accepted a join insert_orders o on o.client_order_id = a.client_order_id
),
insert_ledger as (
  insert into idempo_ledger (caller, idempotency_key, order_row_id, request_digest, answer, first_seen_at, last_seen_at,
    expires_at)
  select r.caller, r.idempotency_key, r.id, r.request_digest, r.response, r.created_at, r.created_at,
         r.created_at + $2::float8 * interval '1 millisecond'
    from results r order by r.caller, r.idempotency_key
),
insert_events as (
  ${insertOrderEventsSql({ id: "o.event_id", type: "'OrderAccepted'", from: "results o order by o.ordinal" })}
)
select r.ordinal::int, 'first' as result, r.response as body, null as detail from results r
union all
select k.ordinal::int, case when k.same_request then 'replayed' else 'conflict' end, k.response, null from existing_keys k
union all
select n.ordinal::int, case when n.order_id_used then 'order_id_used' when n.halted is not null then 'halted'
                          when n.not_reconciled then 'not_reconciled' when n.over_limit is not null then 'over_limit'
                          else 'rate' end,
       null, coalesce(n.halted, n.over_limit)
  from new_requests n where n.ordinal not in (select ordinal from accepted)
order by ordinal`;

/** Returns the results in input order. No two requests of a caller may share a key or an order_id. */
export async function acceptOrders(
  db: Db | Tx,
  rows: readonly AcceptRow[],
  { ledgerMs, keepMs, ordersPerSecond, reconciledWithinMs }: AcceptSettings,
): Promise<readonly AcceptResult[]> {
  const query = {
    name: "accept orders",
    text: acceptOrdersSql,
    values: [JSON.stringify(rows), ledgerMs, keepMs, ordersPerSecond, reconciledWithinMs],
  };
  type Row = AcceptResult & { ordinal: number };
  const { rows: results } = await runStatement<Row>(db, query);
  return results.map(({ ordinal: _, ...result }) => result);
}
