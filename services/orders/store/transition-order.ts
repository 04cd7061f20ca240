/**
 * The statement for every state transition of an order, by a worker, a cancel or an operator. Order, ledger, history (by a
 * trigger) and event are one commit. If the order was claimed or changed since, nothing is written.
 */
import { hash, randomUUIDv7 } from "node:crypto";
import { type Db, runStatement, type Tx, toLastError, toStorableText } from "@todoke/kernel/db";
import type { BrokerFill } from "../brokers/index.ts";
import type { OrderStatus, ReasonCode } from "../order/order-status.ts";
import { insertOrderEventsSql } from "./order-events.ts";
import { insertFillsSql, newFillsSql, toFillRecords } from "./order-fills.ts";
import { ordersSql } from "./outbox-orders.ts";
import { ledgerStatusSql, responseSql } from "./response.ts";

export interface OrderTransition {
  /** outbox_orders.id */
  readonly id: string;
  /** The epoch of the worker's claim; null: only if no worker has claimed the order. */
  readonly epoch: string | null;
  /** Only from one of these states. */
  readonly from: readonly OrderStatus[];
  readonly to: Exclude<OrderStatus, "sending">;
  /** The author of a change without a claim. */
  readonly by?: string;
  readonly code?: ReasonCode;
  readonly reason?: string;
  /** Gives the order all its attempts again. */
  readonly resetAttempts?: boolean;
  /** Until the order is due; default 0. */
  readonly delayMs?: number;
  readonly brokerOrderId?: string;
  /** The broker's result, as the API returns it. */
  readonly result?: Readonly<Record<string, unknown>>;
  /** How an order that succeeds has ended at the broker; default: it is open there, and is followed. */
  readonly execution?: "filled" | "cancelled" | "expired";
  /** All fills of an order that has ended. */
  readonly fills?: readonly BrokerFill[];
  /** The broker's raw reply. A long one is stored cut, with the digest of the whole. */
  readonly evidence?: string;
}

const updateSql = ordersSql.updateClaimedRow({
  orUnclaimed: true,
  where: "t.status = any($4::text[])",
  set: `status = $3,
         changed_by = coalesce($5::jsonb ->> 'by', t.changed_by),
         attempts = case when $5::jsonb ? 'reset_attempts' then 0 else t.attempts end,
         last_error_code = case when $3 = 'succeeded' then null else coalesce($5::jsonb ->> 'code', t.last_error_code) end,
         last_error_msg = case when $3 = 'succeeded' then null
                               when $5::jsonb ? 'code' then $5::jsonb ->> 'reason' else t.last_error_msg end,
         asked = case when $3 = 'unknown' then t.asked + 1 else 0 end,
         in_doubt_since = case when $3 = 'unknown' then coalesce(t.in_doubt_since, clock_timestamp()) end,
         broker_order_id = coalesce($5::jsonb ->> 'broker_order_id', t.broker_order_id),
         broker_result = coalesce($5::jsonb -> 'result', t.broker_result),
         execution = $5::jsonb ->> 'execution',
         filled_qty = t.filled_qty + (select qty from fill_totals),
         filled_notional = t.filled_notional + (select notional from fill_totals),
         version = t.version + (select fills from fill_totals),
         evidence = coalesce($5::jsonb -> 'evidence', t.evidence),
         evidence_digest = coalesce($5::jsonb ->> 'evidence_digest', t.evidence_digest),
         done_at = case when $3 in ('succeeded', 'aborted') then clock_timestamp() end,
         -- Every order is kept equally long after its end, so that a late retry of the request cannot place it again.
         expires_at = case when $3 in ('succeeded', 'aborted') then clock_timestamp() + (t.expires_at - t.created_at)
                           else t.expires_at end`,
  dueInMs: "($5::jsonb ->> 'delay_ms')::float8",
  lease: "end",
});

export const transitionOrderSql = `
with ${newFillsSql("$7")},
updated as materialized (${updateSql}),
${insertFillsSql},
results as materialized (select ${responseSql("u")} as response from updated u),
update_ledger as (
  update idempo_ledger l
     set status = (select ${ledgerStatusSql("u")} from updated u),
         answer = (select response from results),
         result_digest = case when $3 in ('succeeded', 'aborted')
                              then 'sha256:' || encode(sha256((select response from results)), 'hex') end,
         expires_at = case when $3 in ('succeeded', 'aborted') then clock_timestamp() + (l.expires_at - l.first_seen_at)
                           else l.expires_at end
   where l.order_row_id = $1 and (select count(*) from updated) > 0
),
insert_events as (
  ${insertOrderEventsSql({
    id: "$6::uuid",
    type: "case o.status when 'succeeded' then 'OrderSucceeded' when 'aborted' then 'OrderFailed' else 'OrderUnresolved' end",
    from: "updated o where o.status in ('succeeded', 'aborted') or o.status = 'unknown' and o.asked = 1",
    version: "o.version - (select fills from fill_totals)",
  })}
)
select u.version from updated u`;

/** Returns false if the order was claimed or changed since. */
export async function transitionOrder(db: Db | Tx, transition: OrderTransition): Promise<boolean> {
  const { id, epoch, from, to } = transition;
  const query = {
    name: "transition order",
    text: transitionOrderSql,
    values: [
      id,
      epoch,
      to,
      from,
      JSON.stringify(toFields(transition)),
      randomUUIDv7(),
      toFillRecords(transition.fills ?? []),
    ],
  };
  const { rows } = await runStatement(db, query);
  return rows.length > 0;
}

function toFields(transition: OrderTransition) {
  const { by, code, reason, resetAttempts, delayMs = 0, brokerOrderId, result, execution, evidence } = transition;
  return {
    by,
    code,
    reason: reason && toLastError(reason),
    delay_ms: delayMs,
    ...(resetAttempts && { reset_attempts: true }),
    broker_order_id: brokerOrderId,
    result,
    execution,
    ...(evidence !== undefined && {
      evidence: toStorableEvidence(evidence),
      evidence_digest: `sha256:${hash("sha256", evidence, "hex")}`,
    }),
  };
}

const evidenceMax = 8_192;

/** Stored as JSON if it is JSON that PostgreSQL accepts and is short enough; else as text. */
function toStorableEvidence(evidence: string): unknown {
  const text = toStorableText(evidence.slice(0, evidenceMax));
  if (text !== evidence || /\\u0000|\\ud[89a-f]/i.test(text)) return { text };
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}
