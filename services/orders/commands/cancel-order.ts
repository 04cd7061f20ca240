/**
 * Cancels an order. What surely has not been sent is aborted at once, and will never be. Of what may have been, the broker is
 * asked: a worker of the sender does that, and whether it came in time the order then tells.
 */
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { orderEnded, orderNotFound } from "../problems.ts";
import { insertCancelRequest } from "../store/cancel-requests.ts";
import { moveOrder } from "../store/move-order.ts";
import { type KeyOfCaller, lockOrderOfKey, type OrderRow, selectOrder } from "../store/orders.ts";

/** `cancelled`: it is over. `requested`: the broker will be asked. */
interface Cancelled {
  readonly result: "cancelled" | "requested";
  readonly order: OrderRow;
  /** This very call aborted it. */
  readonly aborted?: true;
}

export type CancelOrder = (order: KeyOfCaller) => Promise<Cancelled>;

export interface CancelOptions {
  readonly db: Db;
  /** Hears once of every order that is aborted here. */
  readonly onAborted: (order: OrderRow) => void;
  /** The wake-up of the worker that asks the broker. */
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

/** The row is locked meanwhile: nobody can claim it between the look and the step. */
async function cancel(tx: Tx, key: KeyOfCaller): Promise<Cancelled> {
  const order = await lockOrderOfKey(tx, key);
  if (!order) throw orderNotFound("you have no order under this key");
  const { id, status, reason_code } = order;
  if (status === "aborted") {
    // The same wish again, because its answer was lost: it has come true.
    if (reason_code === "CANCELLED") return { result: "cancelled", order: await shownOf(tx, id) };
    throw orderEnded(`the order was given up already (${reason_code})`);
  }
  if (status === "pending" || status === "failed") {
    const why = `cancelled by ${key.caller}`;
    const step = { id, epoch: null, from: [status], to: "aborted", by: key.caller, code: "CANCELLED", why } as const;
    if (await moveOrder(tx, step)) return { result: "cancelled", order: await shownOf(tx, id), aborted: true };
  }
  await insertCancelRequest(tx, id, key.caller);
  return { result: "requested", order: await shownOf(tx, id) };
}

const shownOf = async (tx: Tx, id: string) => (await selectOrder(tx, id)) as OrderRow;
