/** Orders as the API shows them. */

import { type Queryable, rfc3339Sql, type Tx } from "@todoke/kernel/db";
import type { Static } from "typebox";
import type { Execution, OrderStatus, ReasonCode } from "../order/order-status.ts";
import type { OrderView } from "../routes/schemas.ts";
import { ordersSql } from "./outbox-orders.ts";
import { averagePriceSql } from "./response.ts";

/** An order as the API returns it. */
export type OrderRow = Readonly<Static<typeof OrderView>>;

/** A select list over a row `o`. */
const orderColumns = `o.id::text as id, o.caller, o.order_id, o.user_id, o.idempotency_key, o.client_order_id, o.request_digest,
  o.instrument, o.side, o.qty::text as qty, o.price::text as price, o.order_request_json ->> 'time_in_force' as time_in_force,
  coalesce(o.order_request_json -> 'tags', '[]') as tags, o.adapter, o.status, o.attempts, o.last_error_code as reason_code,
  o.last_error_msg as reason, o.broker_order_id, o.broker_result as result,
  o.execution, trim_scale(o.filled_qty)::text as filled_qty, ${averagePriceSql("o.filled_notional", "o.filled_qty")} as average_price,
  ${rfc3339Sql("o.in_doubt_since")} as in_doubt_since,
  (select c.status from cancel_requests c where c.order_row_id = o.id) as cancel,
  ${ordersSql.dueAtSql("o", ["pending", "failed", "unknown"])} as next_attempt_at,
  ${rfc3339Sql("o.created_at")} as created_at, ${rfc3339Sql("o.updated_at")} as updated_at, ${rfc3339Sql("o.done_at")} as ended_at`;

export interface CallerKey {
  readonly caller: string;
  readonly idempotencyKey: string;
}

export async function hasKey(db: Queryable, { caller, idempotencyKey }: CallerKey): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "has order key",
    text: `select from outbox_orders where caller = $1 and idempotency_key = $2`,
    values: [caller, idempotencyKey],
  });
  return rowCount === 1;
}

export async function selectOrderByKey(db: Queryable, { caller, idempotencyKey }: CallerKey) {
  const { rows } = await db.query<OrderRow>({
    name: "select order by key",
    text: `select ${orderColumns} from outbox_orders o where o.caller = $1 and o.idempotency_key = $2`,
    values: [caller, idempotencyKey],
  });
  return rows[0];
}

/** The columns that decide about a transition. The row is locked until the transaction ends. */
export interface LockedOrder {
  readonly id: string;
  readonly status: OrderStatus;
  readonly execution: Execution | null;
  readonly reason_code: ReasonCode | null;
  /** How long the broker may still take the last request; null if it guarantees no end, or nothing was sent. */
  readonly window_left_ms: number | null;
}

const lockedColumns = `id::text as id, status, execution, last_error_code as reason_code,
  (extract(epoch from window_ends_at - clock_timestamp()) * 1000)::float8 as window_left_ms`;

export async function lockOrderByKey(tx: Tx, { caller, idempotencyKey }: CallerKey): Promise<LockedOrder | undefined> {
  const { rows } = await tx.query<LockedOrder>({
    name: "lock order by key",
    text: `select ${lockedColumns} from outbox_orders where caller = $1 and idempotency_key = $2 for update`,
    values: [caller, idempotencyKey],
  });
  return rows[0];
}

export async function lockOrder(tx: Tx, id: string): Promise<LockedOrder | undefined> {
  const { rows } = await tx.query<LockedOrder>({
    name: "lock order",
    text: `select ${lockedColumns} from outbox_orders where id = $1 for update`,
    values: [id],
  });
  return rows[0];
}

/** With a caller, only that caller's order. */
export async function selectOrder(db: Queryable, id: string, caller?: string): Promise<OrderRow | undefined> {
  const { rows } = await db.query<OrderRow>({
    name: "select order",
    text: `select ${orderColumns} from outbox_orders o where o.id = $1 and ($2::text is null or o.caller = $2)`,
    values: [id, caller ?? null],
  });
  return rows[0];
}

/** A position in the list; newer orders come before it. */
export interface OrderCursor {
  readonly created_at: string;
  readonly id: string;
}

export interface OrderFilter {
  readonly caller?: string | undefined;
  readonly status?: OrderStatus;
  readonly instrument?: string;
  readonly order_id?: string;
  readonly user_id?: string;
  /** Accepted at or after `from`, and before `to`. */
  readonly from?: string;
  readonly to?: string;
  readonly after: OrderCursor | undefined;
  readonly limit: number;
}

/** Newest first. The statement contains only the given filters, so that each combination can use its index. */
export async function selectOrders(db: Queryable, filter: OrderFilter): Promise<OrderRow[]> {
  const { caller, status, instrument, order_id, user_id, from, to, after, limit } = filter;
  const values: unknown[] = [];
  const value = (given: unknown) => `$${values.push(given)}`;
  const where = [
    ...(caller === undefined ? [] : [`o.caller = ${value(caller)}`]),
    // A literal, not a parameter: only then can the planner use the partial index of the status. There are six.
    ...(status === undefined ? [] : [`o.status = '${status}'`]),
    ...(instrument === undefined ? [] : [`o.instrument = ${value(instrument)}`]),
    ...(user_id === undefined ? [] : [`o.user_id = ${value(user_id)}`]),
    ...(order_id === undefined ? [] : [`o.order_id = ${value(order_id)}`]),
    ...(from === undefined ? [] : [`o.created_at >= ${value(from)}::timestamptz`]),
    ...(to === undefined ? [] : [`o.created_at < ${value(to)}::timestamptz`]),
    ...(after ? [`(o.created_at, o.id) < (${value(after.created_at)}::timestamptz, ${value(after.id)}::bigint)`] : []),
  ];
  const { rows } = await db.query<OrderRow>(
    `select ${orderColumns} from outbox_orders o ${where.length > 0 ? `where ${where.join(" and ")}` : ""}
      order by o.created_at desc, o.id desc limit ${value(limit)}`,
    values,
  );
  return rows;
}

/** Orders that wait for the broker or an operator, oldest first. */
export async function selectUnresolved(
  db: Queryable,
  { caller, after, limit }: Pick<OrderFilter, "caller" | "after" | "limit">,
): Promise<OrderRow[]> {
  const { rows } = await db.query<OrderRow>({
    name: "select unresolved",
    text: `select ${orderColumns} from outbox_orders o
            where o.status = 'unknown' and (o.in_doubt_since, o.id) > ($1::timestamptz, $2::bigint)
              and ($4::text is null or o.caller = $4)
            order by o.in_doubt_since, o.id limit $3`,
    values: [after?.created_at ?? "-infinity", after?.id ?? "0", limit, caller ?? null],
  });
  return rows;
}

export interface OrderName {
  /** An idempotency key or a client order ID. */
  readonly name: string;
  readonly caller?: string | undefined;
}

// An operator chooses from these.
const namesakesMax = 20;

/** Oldest first. Several if callers chose the same key. */
export async function selectOrdersByName(
  db: Queryable,
  { name, caller }: OrderName,
): Promise<readonly Pick<OrderRow, "id" | "caller">[]> {
  const { rows } = await db.query<Pick<OrderRow, "id" | "caller">>({
    name: "select orders by name",
    text: `select id::text as id, caller from outbox_orders
            where (idempotency_key = $1 or client_order_id = $1) and ($2::text is null or caller = $2)
            order by outbox_orders.id limit ${namesakesMax}`,
    values: [name, caller ?? null],
  });
  return rows;
}
