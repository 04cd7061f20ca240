/**
 * Cancels open orders of all callers, oldest first, a bounded number at a time. Each order is cancelled in a transaction of its own,
 * exactly as its caller would cancel it, so that a call that is cut off or repeated does no harm: an order that is aborted is no
 * longer open, and one whose cancel is requested stays requested.
 *
 * Orders that are accepted during the calls are cancelled too. To have none left, stop trading first.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { type OpenOrdersFilter, selectOpenOrders } from "../store/open-orders.ts";
import type { OrderRow } from "../store/orders.ts";
import { type CancelOptions, cancelOpenOrder } from "./cancel-order.ts";

export interface CancelAllRequest extends Omit<OpenOrdersFilter, "after" | "limit"> {
  /** Who asks; recorded with every order. */
  readonly by: string;
  /** The ID of the last order of the call before; "0": from the first. */
  readonly after: string;
  readonly limit: number;
}

/** `ended`: it has ended since it was found. */
export interface CancelledOrder {
  readonly result: "cancelled" | "requested" | "ended";
  readonly order: OrderRow;
}

export interface CancelAllResult {
  readonly results: readonly CancelledOrder[];
  /** The ID to continue after; undefined if all open orders were handled. */
  readonly next?: string;
}

export type CancelAllOrders = (request: CancelAllRequest) => Promise<CancelAllResult>;

export function cancelAllOrders({ db, onAborted, onRequested }: CancelOptions): CancelAllOrders {
  return async ({ by, ...filter }) => {
    const ids = await selectOpenOrders(db, filter);
    const results: CancelledOrder[] = [];
    for (const id of ids) {
      const cancelled = await cancelOne(db, id, by);
      if (cancelled.aborted) onAborted(cancelled.order);
      const { result, order } = cancelled;
      results.push({ result, order });
    }
    if (results.some(({ result }) => result === "requested")) onRequested();
    const last = ids.length === filter.limit ? ids.at(-1) : undefined;
    return { results, ...(last !== undefined && { next: last }) };
  };
}

const cancelOne = (db: Db, id: string, by: string) => transaction(db, (tx) => cancelOpenOrder(tx, id, by));
