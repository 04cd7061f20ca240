/**
 * A person says what became of an order that the broker could not tell of: it was taken, and has succeeded; or it was not,
 * and is sent again. Who said so, and why, is kept in the same transaction.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { orderNotFound, orderNotUnresolved } from "../problems.ts";
import { moveOrder } from "../store/move-order.ts";
import { lockOrder, type OrderRow, selectOrder } from "../store/orders.ts";
import { insertResolution, type Resolution } from "../store/resolutions.ts";

export interface Resolving extends Omit<Resolution, "orderRowId"> {
  /** outbox_orders.id */
  readonly id: string;
  /** What the broker calls it, if it was taken and that is known. */
  readonly brokerOrderId?: string;
}

export async function resolveOrder(db: Db, resolving: Resolving): Promise<OrderRow> {
  const { id, as, reason, by, brokerOrderId } = resolving;
  return transaction(db, async (tx) => {
    const order = await lockOrder(tx, id);
    if (!order) throw orderNotFound(`there is no order ${id}`);
    const step = { id, epoch: null, from: ["unknown"], by } as const;
    const moved =
      as === "taken"
        ? await moveOrder(tx, { ...step, to: "succeeded", ...(brokerOrderId !== undefined && { brokerOrderId }) })
        : await moveOrder(tx, { ...step, to: "pending" });
    if (!moved) throw orderNotUnresolved(`order ${id} is ${order.status}`);
    await insertResolution(tx, { orderRowId: id, as, reason, by });
    return (await selectOrder(tx, id)) as OrderRow;
  });
}
