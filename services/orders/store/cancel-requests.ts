/** Requests to cancel orders that the broker may have; a worker passes them on. */
import { type Claimed, createClaims, tableSql } from "@todoke/kernel/claims";
import { type Db, runStatement, type Tx } from "@todoke/kernel/db";
import type { OrderStatus } from "../order/order-status.ts";

/** A second request for the same order has no effect. */
export async function insertCancelRequest(tx: Tx, orderRowId: string, by: string): Promise<void> {
  await tx.query({
    name: "insert cancel request",
    text: `insert into cancel_requests (order_row_id, adapter, requested_by)
           select id, adapter, $2 from outbox_orders where id = $1 on conflict (order_row_id) do nothing`,
    values: [orderRowId, by],
  });
}

export interface CancelRow {
  readonly orderRowId: string;
  readonly clientOrderId: string;
  readonly idempotencyKey: string;
  /** Attempts to send the order. */
  readonly attempts: number;
  readonly requestedBy: string;
  readonly orderStatus: OrderStatus;
  /** Trading is halted for cancels too; `cancel-only` allows them. */
  readonly isHalted: boolean;
}

export type ClaimedCancel = Claimed<CancelRow>;

export const cancelRequests = createClaims<CancelRow>({
  table: "cancel_requests",
  key: "order_row_id",
  keyType: "bigint",
  queue: "adapter",
  states: { ready: "requested", claimed: "sending", done: "done", dead: "refused" },
  select: `c.order_row_id::text as "orderRowId", o.client_order_id as "clientOrderId", o.idempotency_key as "idempotencyKey",
    o.attempts, c.requested_by as "requestedBy", o.status as "orderStatus",
    exists (select from trading_state s where s.scope in ('*', o.instrument) and s.mode = 'halt') as "isHalted"`,
  join: "join outbox_orders o on o.id = c.order_row_id",
});

const settleCancelSql = tableSql(cancelRequests.table).updateClaimedRow({
  set: "status = $3, result = jsonb_build_object('why', $4::text), done_at = clock_timestamp()",
  where: "t.status = 'sending'",
  clearsError: true,
  lease: "end",
});

export interface CancelResult {
  /** `aborted`: the order ended without having reached the broker. */
  readonly status: "done" | "refused" | "aborted";
  readonly reason: string;
}

/** Returns false if another worker has claimed the request since. */
export async function settleCancel(
  db: Db,
  { claim }: ClaimedCancel,
  { status, reason }: CancelResult,
): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    name: "settle cancel",
    text: settleCancelSql,
    values: [claim.key, claim.epoch, status, reason],
  });
  return rowCount === 1;
}
