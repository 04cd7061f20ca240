/**
 * Cancels an order. One that was not sent is aborted at once. One that may have been sent is cancelled at the broker: a worker passes
 * the request on, and the order then says whether it came in time.
 */
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { orderEnded, orderNotFound } from "../problems.ts";
import { insertCancelRequest } from "../store/cancel-requests.ts";
import {
  type CallerKey,
  type LockedOrder,
  lockOrder,
  lockOrderByKey,
  type OrderRow,
  selectOrder,
} from "../store/orders.ts";
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

async function cancel(tx: Tx, key: CallerKey): Promise<CancelResult> {
  const order = await lockOrderByKey(tx, key);
  if (!order) throw orderNotFound("You have no order under this key.");
  const { id, status, reason_code } = order;
  if (status !== "aborted") return cancelLocked(tx, order, key.caller);
  // A retry, because the first response was lost.
  if (reason_code === "CANCELLED") return { result: "cancelled", order: await reloadOrder(tx, id) };
  throw orderEnded(`The order was aborted before (${reason_code}).`);
}

/** Cancels an order of any caller, unless it has ended. */
export async function cancelOpenOrder(
  tx: Tx,
  id: string,
  by: string,
): Promise<CancelResult | { readonly result: "ended"; readonly order: OrderRow; readonly aborted?: undefined }> {
  const order = await lockOrder(tx, id);
  if (!order) throw orderNotFound(`There is no order ${id}.`);
  const { status, execution } = order;
  if (status === "aborted" || (status === "succeeded" && execution !== "open"))
    return { result: "ended", order: await reloadOrder(tx, id) };
  return cancelLocked(tx, order, by);
}

/** The row is locked, so that no worker can claim it between the check and the transition. */
async function cancelLocked(tx: Tx, { id, status }: LockedOrder, by: string): Promise<CancelResult> {
  if (status === "pending" || status === "failed") {
    const target = { to: "aborted", code: "CANCELLED", reason: `cancelled by ${by}` } as const;
    const applied = await transitionOrder(tx, { ...target, id, epoch: null, from: [status], by });
    if (applied) return { result: "cancelled", order: await reloadOrder(tx, id), aborted: true };
  }
  await insertCancelRequest(tx, id, by);
  return { result: "requested", order: await reloadOrder(tx, id) };
}

const reloadOrder = async (tx: Tx, id: string) => (await selectOrder(tx, id)) as OrderRow;
