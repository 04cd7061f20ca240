/** Orders as the API shows them. */
import { type Queryable, type Tx, utcText } from "@todoke/kernel/db";
import type { OrderStatus, ReasonCode } from "../order.ts";
import type { Side, TimeInForce } from "../order-request.ts";
import { ordersSql } from "./outbox-orders.ts";

export interface OrderRow {
  /** Ours; order_id is the caller's. */
  readonly id: string;
  readonly caller: string;
  readonly order_id: string;
  /** The player for whom it was placed. */
  readonly user_id: string | null;
  readonly idempotency_key: string;
  readonly client_order_id: string;
  readonly request_digest: string;
  readonly instrument: string;
  readonly side: Side;
  readonly qty: string;
  readonly price: string | null;
  readonly time_in_force: TimeInForce;
  readonly tags: string[];
  readonly adapter: string;
  readonly status: OrderStatus;
  readonly attempts: number;
  readonly reason_code: ReasonCode | null;
  readonly reason: string | null;
  readonly broker_order_id: string | null;
  readonly result: Record<string, unknown> | null;
  readonly in_doubt_since: string | null;
  /** What became of the wish to cancel it. */
  readonly cancel: "requested" | "sending" | "done" | "refused" | "aborted" | null;
  readonly next_attempt_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly ended_at: string | null;
}

/** A select list over a row `o`. */
const shownOrder = `o.id::text as id, o.caller, o.order_id, o.user_id, o.idempotency_key, o.client_order_id, o.request_digest,
  o.instrument, o.side, o.qty::text as qty, o.price::text as price, o.order_request_json ->> 'time_in_force' as time_in_force,
  coalesce(o.order_request_json -> 'tags', '[]') as tags, o.adapter, o.status, o.attempts, o.last_error_code as reason_code,
  o.last_error_msg as reason, o.broker_order_id, o.broker_result as result,
  ${utcText("o.in_doubt_since")} as in_doubt_since,
  (select c.status from cancel_requests c where c.order_row_id = o.id) as cancel,
  ${ordersSql.dueAtText("o", ["pending", "failed", "unknown"])} as next_attempt_at,
  ${utcText("o.created_at")} as created_at, ${utcText("o.updated_at")} as updated_at, ${utcText("o.done_at")} as ended_at`;

export interface KeyOfCaller {
  readonly caller: string;
  readonly idempotencyKey: string;
}

export async function knowsKey(db: Queryable, { caller, idempotencyKey }: KeyOfCaller): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "knows key",
    text: `select from outbox_orders where caller = $1 and idempotency_key = $2`,
    values: [caller, idempotencyKey],
  });
  return rowCount === 1;
}

export async function selectOrderOfKey(db: Queryable, { caller, idempotencyKey }: KeyOfCaller) {
  const { rows } = await db.query<OrderRow>({
    name: "select order of key",
    text: `select ${shownOrder} from outbox_orders o where o.caller = $1 and o.idempotency_key = $2`,
    values: [caller, idempotencyKey],
  });
  return rows[0];
}

/** What decides about a step, with the row locked until the transaction ends. */
export interface LockedOrder {
  readonly id: string;
  readonly status: OrderStatus;
  readonly reason_code: ReasonCode | null;
  /** For so long the broker may still take the last request; null where it promises no end, or nothing was sent. */
  readonly window_left_ms: number | null;
}

const decisive = `id::text as id, status, last_error_code as reason_code,
  (extract(epoch from window_ends_at - clock_timestamp()) * 1000)::float8 as window_left_ms`;

export async function lockOrderOfKey(
  tx: Tx,
  { caller, idempotencyKey }: KeyOfCaller,
): Promise<LockedOrder | undefined> {
  const { rows } = await tx.query<LockedOrder>({
    name: "lock order of key",
    text: `select ${decisive} from outbox_orders where caller = $1 and idempotency_key = $2 for update`,
    values: [caller, idempotencyKey],
  });
  return rows[0];
}

export async function lockOrder(tx: Tx, id: string): Promise<LockedOrder | undefined> {
  const { rows } = await tx.query<LockedOrder>({
    name: "lock order",
    text: `select ${decisive} from outbox_orders where id = $1 for update`,
    values: [id],
  });
  return rows[0];
}

/** Only if it is the caller's, where one is named. */
export async function selectOrder(db: Queryable, id: string, caller?: string): Promise<OrderRow | undefined> {
  const { rows } = await db.query<OrderRow>({
    name: "select order",
    text: `select ${shownOrder} from outbox_orders o where o.id = $1 and ($2::text is null or o.caller = $2)`,
    values: [id, caller ?? null],
  });
  return rows[0];
}

/** A place in the list: newer orders come before it. */
export interface Listed {
  readonly created_at: string;
  readonly id: string;
}

export interface OrderFilter {
  readonly caller?: string | undefined;
  readonly status?: OrderStatus;
  readonly instrument?: string;
  readonly order_id?: string;
  /** Accepted from this time on, and before that one. */
  readonly from?: string;
  readonly to?: string;
  readonly after: Listed | undefined;
  readonly limit: number;
}

/** Newest first. Only what is asked for stands in the statement, so that each has an index that fits it. */
export async function selectOrders(db: Queryable, filter: OrderFilter): Promise<OrderRow[]> {
  const { caller, status, instrument, order_id, from, to, after, limit } = filter;
  const values: unknown[] = [];
  const value = (given: unknown) => `$${values.push(given)}`;
  const where = [
    ...(caller === undefined ? [] : [`o.caller = ${value(caller)}`]),
    // One of six words, each its own statement: a partial index is found only by the word itself.
    ...(status === undefined ? [] : [`o.status = '${status}'`]),
    ...(instrument === undefined ? [] : [`o.instrument = ${value(instrument)}`]),
    ...(order_id === undefined ? [] : [`o.order_id = ${value(order_id)}`]),
    ...(from === undefined ? [] : [`o.created_at >= ${value(from)}::timestamptz`]),
    ...(to === undefined ? [] : [`o.created_at < ${value(to)}::timestamptz`]),
    ...(after ? [`(o.created_at, o.id) < (${value(after.created_at)}::timestamptz, ${value(after.id)}::bigint)`] : []),
  ];
  const { rows } = await db.query<OrderRow>(
    `select ${shownOrder} from outbox_orders o ${where.length > 0 ? `where ${where.join(" and ")}` : ""}
      order by o.created_at desc, o.id desc limit ${value(limit)}`,
    values,
  );
  return rows;
}

/** What waits for an answer of the broker, or for a person; the longest in doubt first. */
export async function selectUnresolved(
  db: Queryable,
  { caller, after, limit }: Pick<OrderFilter, "caller" | "after" | "limit">,
): Promise<OrderRow[]> {
  const { rows } = await db.query<OrderRow>({
    name: "select unresolved",
    text: `select ${shownOrder} from outbox_orders o
            where o.status = 'unknown' and (o.in_doubt_since, o.id) > ($1::timestamptz, $2::bigint)
              and ($4::text is null or o.caller = $4)
            order by o.in_doubt_since, o.id limit $3`,
    values: [after?.created_at ?? "-infinity", after?.id ?? "0", limit, caller ?? null],
  });
  return rows;
}
