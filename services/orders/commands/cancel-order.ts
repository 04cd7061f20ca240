/**
 * Cancels an order. One that was not sent is aborted at once. One that may have been sent is cancelled at the broker: a worker passes
 * the request on, and the order then says whether it came in time.
 */
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { orderEnded, orderNotFound } from "../problems.ts";
import { insertCancelRequest } from "../store/cancel-requests.ts";
import { type CallerKey, lockOrderByKey, type OrderRow, selectOrder } from "../store/orders.ts";
import { transitionOrder } from "../store/transition-order.ts";

/** `cancelled`: the order has ended. `requested`: the broker will be asked. */
interface CancelResult {
  readonly result: "cancelled" | "requested";
  readonly order: OrderRow;
  /** Whether this call aborted it. */
  readonly aborted?: true;
}

export type CancelOrder = (order: CallerKey) => Promise<CancelResult>;

export interface CancelOptions {
  readonly db: Db;
  /** Called once for every order that is aborted here. */
  readonly onAborted: (order: OrderRow) => void;
  /** Wakes the worker that asks the broker. */
  readonly onRequested: () => void;
}

export function cancelOrder({ db, onAborted, onRequested }: CancelOptions): CancelOrder {
  return async (key) => {
    const cancelled = await transaction(db, (tx) => cancel(tx, key));
    if (cancelled.aborted) onAborted(cancelled.order);
    if (cancelled.result === "requested") onRequested();
    return cancelled;
  };
}

/** The row is locked, so that no worker can claim it between the check and the transition. */
async function cancel(tx: Tx, key: CallerKey): Promise<CancelResult> {
  const order = await lockOrderByKey(tx, key);
  if (!order) throw orderNotFound("You have no order under this key.");
  const { id, status, reason_code } = order;
  if (status === "aborted") {
    // A retry, because the first response was lost.
    if (reason_code === "CANCELLED") return { result: "cancelled", order: await reloadOrder(tx, id) };
    throw orderEnded(`The order was aborted before (${reason_code}).`);
  }
  if (status === "pending" || status === "failed") {
    const reason = `cancelled by ${key.caller}`;
    const target = { to: "aborted", code: "CANCELLED", reason } as const;
    const applied = await transitionOrder(tx, { ...target, id, epoch: null, from: [status], by: key.caller });
    if (applied) return { result: "cancelled", order: await reloadOrder(tx, id), aborted: true };
  }
  await insertCancelRequest(tx, id, key.caller);
  return { result: "requested", order: await reloadOrder(tx, id) };
}

const reloadOrder = async (tx: Tx, id: string) => (await selectOrder(tx, id)) as OrderRow;
