/**
 * Orders as jobs of the sender. A worker claims only the orders of its own broker: another broker would truthfully answer that it
 * never had them.
 */
import { type Claimed, type Claims, createClaims } from "@todoke/kernel/claims";
import { type Db, runStatement } from "@todoke/kernel/db";
import type { BrokerOrder } from "../brokers/index.ts";
import type { ReasonCode } from "../order/order-status.ts";
import { ordersSql, outboxOrdersTable } from "./outbox-orders.ts";

/** The columns that workers read. */
export interface SendableOrder extends BrokerOrder {
  readonly id: string;
  readonly idempotencyKey: string;
  /** A request may have been sent whose result is not recorded. */
  readonly maybeSent: boolean;
  /** Since when, to the microsecond: a Date would round it. */
  readonly unresolvedSince: string | null;
  /** The timestamp of the last request, by the broker's clock. */
  readonly lastSentAt: Date | null;
  readonly lastErrorCode: ReasonCode | null;
  /** How often the broker was asked about it while it was unresolved. */
  readonly checks: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Since it was accepted, by the database's clock. */
  readonly ageMs: number;
}

export type ClaimedOrder = Claimed<SendableOrder>;

/** A select list over a claimed row `c`. */
export const claimedColumns = `c.id::text as id, c.client_order_id as "clientOrderId", c.idempotency_key as "idempotencyKey",
  c.instrument, c.side, c.qty::text as qty, c.price::text as price,
  c.order_request_json ->> 'time_in_force' as "timeInForce",
  (c.order_request_json -> 'risk_constraints' ->> 'max_slippage_bps')::int as "maxSlippageBps",
  c.in_doubt_since is not null as "maybeSent", c.in_doubt_since::text as "unresolvedSince", c.last_sent_at as "lastSentAt",
  c.last_error_code as "lastErrorCode", c.asked as checks, c.headers,
  (extract(epoch from clock_timestamp() - c.created_at) * 1000)::float8 as "ageMs"`;

const outboxOrders = createClaims<SendableOrder>({ ...outboxOrdersTable, select: claimedColumns });

/**
 * Orders to send. Each claim first requeues orders whose backoff has passed, and postpones halted ones. While all trading is
 * halted, only orders that a dead sender may have sent are claimed: the broker is asked about them, and they are not sent.
 */
export const ordersToSend: Claims<SendableOrder> = {
  ...outboxOrders,
  claim: async (db, request) => ((await requeueDue(db)) ? outboxOrders : maybeSentByDeadSenders).claim(db, request),
};

/** Asking about an order is not an attempt to send it, so the claim is not counted as one. */
const maybeSentByDeadSenders = createClaims<SendableOrder>({
  ...outboxOrdersTable,
  name: "orders of dead senders",
  select: claimedColumns,
  claim: { where: "t.in_doubt_since is not null", expiredOnly: true, uncounted: true },
});

/** Halted orders are postponed by this, not claimed: a halt of hours leaves no trail of attempts. */
export const haltedRetryMs = 5_000;

// The limit bounds one statement; a worker whose batch was full claims again at once.
const requeueDueSql = `
with halted as materialized (select scope from trading_state where mode <> 'active'),
requeued as (
  ${ordersSql.updateWaitingRows({ state: "failed", due: "now", set: "status = 'pending'", limit: "200" })}
),
postponed as (
  ${ordersSql.updateWaitingRows({
    state: "pending",
    due: "now",
    where: "t.instrument = any(array(select scope from halted))",
    dueInMs: `${haltedRetryMs}`,
    limit: "(select case when count(*) > 0 then 200 else 0 end from halted)",
  })}
)
select exists (select from halted where scope = '*') as all_halted`;

/** Returns false while all trading is halted. */
async function requeueDue(db: Db): Promise<boolean> {
  const query = { name: "requeue due orders", text: requeueDueSql };
  const { rows } = await runStatement<{ all_halted: boolean }>(db, query);
  return rows[0]?.all_halted === false;
}

/** Makes postponed orders due now, because trading may have been resumed. */
export async function requeuePostponed(db: Db): Promise<void> {
  await runStatement(db, {
    name: "requeue postponed orders",
    text: ordersSql.updateWaitingRows({ state: "pending", due: "later", dueInMs: "0", limit: "10000" }),
  });
}
