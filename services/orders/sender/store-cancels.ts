/** The SQL of cancel requests as work. */
import { type Claimed, claims, tableSql } from "@todoke/kernel/claims";
import { type Db, statement } from "@todoke/kernel/db";
import type { OrderStatus } from "../order.ts";

export interface CancelRow {
  readonly orderRowId: string;
  readonly clientOrderId: string;
  readonly idempotencyKey: string;
  /** To send the order. */
  readonly attempts: number;
  readonly requestedBy: string;
  readonly orderStatus: OrderStatus;
  /** Halted for cancels too; cancel-only lets them through. */
  readonly isHalted: boolean;
}

export type HeldCancel = Claimed<CancelRow>;

export const cancelRequests = claims<CancelRow>({
  table: "cancel_requests",
  key: "order_row_id",
  keyType: "bigint",
  queue: "adapter",
  states: { ready: "requested", claimed: "sending", done: "done", dead: "refused" },
  read: `c.order_row_id::text as "orderRowId", o.client_order_id as "clientOrderId", o.idempotency_key as "idempotencyKey",
    o.attempts, c.requested_by as "requestedBy", o.status as "orderStatus",
    exists (select from trading_state s where s.scope in ('*', o.instrument) and s.mode = 'halt') as "isHalted"`,
  join: "join outbox_orders o on o.id = c.order_row_id",
});

export interface CancelEnd {
  /** aborted: the order ended without having reached the broker. */
  readonly status: "done" | "refused" | "aborted";
  readonly why: string;
}

/** What became of the request, if it is still ours to say. */
export async function endCancel(db: Db, { claim }: HeldCancel, { status, why }: CancelEnd): Promise<boolean> {
  const { rowCount } = await statement(db, {
    name: "end cancel",
    text: tableSql(cancelRequests.table).updateHeldRow({
      set: "status = $3, result = jsonb_build_object('why', $4::text), done_at = clock_timestamp()",
      where: "t.status = 'sending'",
      lease: "end",
    }),
    values: [claim.key, claim.epoch, status, why],
  });
  return rowCount === 1;
}
