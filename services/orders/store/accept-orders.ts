/** The one statement by which orders are taken in. */
import { type Db, recordsSql, statement } from "@todoke/kernel/db";
import { answerSql } from "./answer.ts";
import { insertOrderEventsSql } from "./events.ts";
import { ordersSql } from "./outbox-orders.ts";

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
  readonly headers: Readonly<Record<string, string>>;
  readonly event_id: string;
}

export interface AcceptSettings {
  readonly ledgerMs: number;
  readonly keepMs: number;
  /** Over all processes; null: as many as come. */
  readonly ordersPerSecond: number | null;
  /** How long ago the broker's books were last compared, at the most; null: however long. */
  readonly reconciledWithinMs: number | null;
}

export type AcceptResult =
  | { readonly result: "first" | "replayed"; readonly answer: Buffer }
  /** `conflict`: the key was first sent with another body. Nothing was done. */
  | {
      readonly result: "conflict" | "halted" | "not_reconciled" | "order_id_used" | "rate";
      readonly detail: string | null;
    };

// Of the second that the orders fall into: how many were taken before, and how many of these may be. Time never goes back
// here: who waited for the row longer than a second is counted where the one before was.
const takenBefore = `case when date_trunc('second', r.counted_at)
                              = date_trunc('second', greatest(r.counted_at, (select at from moment)))
                         then r.taken else 0 end`;
const grantedNow = `greatest(0, least((select count(*) from willing), $4::int - (${takenBefore})))::int`;

const columns = `caller text, idempotency_key text, order_id text, user_id text, client_order_id text, request jsonb, request_digest text,
  adapter text, instrument text, side text, qty numeric, price numeric, headers jsonb, event_id uuid`;

/**
 * `known` are keys that have an order; they are answered whatever the state of trading is. Of the `unseen`, those that may
 * not be taken now are refused, and the rest is written down: order, history (by a trigger), ledger and event.
 *
 * Where there is a limit, the row of order_rate is what all processes queue at, and the time of an order is the time at
 * which it was counted there. A key, or an order_id, that another process writes at this moment is met by a unique index:
 * the whole statement fails with 23505, and the batch is run again request by request. Look-ups are LATERAL … LIMIT 1 or
 * scalar, so that they stay index probes whatever the planner believes of the tables.
 */
export const text = `
with input as materialized (select * from ${recordsSql("$1", columns)}),
known as materialized (
  select i.ordinal, o.id, o.request_digest = i.request_digest as same_request, coalesce(l.answer, o.answer) as answer
    from input i
   cross join lateral (
           select o.id, o.request_digest, ${answerSql("o")} as answer
             from outbox_orders o where o.caller = i.caller and o.idempotency_key = i.idempotency_key limit 1) o
    left join lateral (select l.answer from idempo_ledger l where l.order_row_id = o.id limit 1) l on true
),
seen as (
  update idempo_ledger l set last_seen_at = clock_timestamp(), seen_count = l.seen_count + 1
   where l.order_row_id = any(array(select id from known where same_request))
),
unseen as materialized (
  select i.*,
         (select t.mode || ': ' || t.reason from trading_state t
           where t.scope = any(array['*', i.instrument]) and t.mode <> 'active' order by t.scope limit 1) as halted,
         (select true from outbox_orders o where o.caller = i.caller and o.order_id = i.order_id limit 1) as order_id_used,
         $5::float8 is not null and coalesce(
           (select r.last_ok_at from reconciliations r where r.adapter = i.adapter limit 1)
             < statement_timestamp() - $5::float8 * interval '1 millisecond', true) as not_reconciled
    from input i where i.ordinal not in (select ordinal from known)
),
willing as materialized (
  select u.*, row_number() over (order by u.ordinal) as turn from unseen u
   where u.halted is null and u.order_id_used is null and not u.not_reconciled
),
moment as materialized (select clock_timestamp() as at),
counted as materialized (
  update order_rate r
     set counted_at = greatest(r.counted_at, (select at from moment)),
         taken = ${takenBefore} + ${grantedNow},
         granted = ${grantedNow}
   where r.scope = '*' and $4::int is not null and exists (select from willing)
  returning r.counted_at, r.granted
),
accepted as materialized (
  select w.*, coalesce((select counted_at from counted), (select at from moment)) as at
    from willing w where $4::int is null or w.turn <= (select granted from counted)
),
ordered as (
  insert into outbox_orders (created_at, updated_at, ${ordersSql.dueAt}, caller, idempotency_key, order_id, user_id,
    client_order_id, order_request_json, request_digest, adapter, instrument, side, qty, price, headers, changed_by, expires_at)
  select at, at, at, caller, idempotency_key, order_id, user_id, client_order_id, request, request_digest, adapter,
         instrument, side, qty, price, headers, caller, at + $3::float8 * interval '1 millisecond'
    from accepted order by caller, idempotency_key
  returning *
),
told as materialized (
  select a.ordinal, a.event_id, o.*, ${answerSql("o")} as answer
    from accepted a join ordered o on o.client_order_id = a.client_order_id
),
noted as (
  insert into idempo_ledger (caller, idempotency_key, order_row_id, request_digest, answer, first_seen_at, last_seen_at,
    expires_at)
  select t.caller, t.idempotency_key, t.id, t.request_digest, t.answer, t.created_at, t.created_at,
         t.created_at + $2::float8 * interval '1 millisecond'
    from told t order by t.caller, t.idempotency_key
),
insert_events as (
  ${insertOrderEventsSql({ id: "o.event_id", type: "'OrderAccepted'", from: "told o order by o.ordinal" })}
)
select t.ordinal::int, 'first' as result, t.answer, null as detail from told t
union all
select k.ordinal::int, case when k.same_request then 'replayed' else 'conflict' end, k.answer, null from known k
union all
select u.ordinal::int, case when u.order_id_used then 'order_id_used' when u.halted is not null then 'halted'
                          when u.not_reconciled then 'not_reconciled' else 'rate' end, null, u.halted
  from unseen u where u.ordinal not in (select ordinal from accepted)
order by ordinal`;

/** Carries the requests out and answers each in its place. No two may share a key or an order_id of a caller. */
export async function acceptOrders(
  db: Db,
  rows: readonly AcceptRow[],
  { ledgerMs, keepMs, ordersPerSecond, reconciledWithinMs }: AcceptSettings,
): Promise<readonly AcceptResult[]> {
  const { rows: results } = await statement<AcceptResult & { ordinal: number }>(db, {
    name: "accept orders",
    text,
    values: [JSON.stringify(rows), ledgerMs, keepMs, ordersPerSecond, reconciledWithinMs],
  });
  return results.map(({ ordinal: _, ...result }) => result);
}
