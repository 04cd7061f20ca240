/**
 * A person says what became of an order that the broker could not tell of: it was taken, and has succeeded; or it was not,
 * and is sent again, however often it was before. Who said so, and why, is kept in the same transaction.
 *
 * Nobody's word goes before the broker's: while an order is being sent, or asked about, its answer may be on its way, and to
 * send the order again then could double it. That is over within the time that the broker has for an answer. Nor does it go
 * before the broker's window: a request that the network holds back may be taken until that is over, and the order that is
 * sent again then is the second one. Only a broker that promises no window leaves this to the person.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { orderInHand, orderNotFound, orderNotUnresolved, orderWindowOpen } from "../problems.ts";
import { moveOrder } from "../store/move-order.ts";
import { type LockedOrder, lockOrder, type OrderRow, selectOrder } from "../store/orders.ts";
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
    if (as === "not-taken") refuseWithinWindow(order);
    const step = { id, epoch: null, from: ["unknown"], by } as const;
    const moved =
      as === "taken"
        ? await moveOrder(tx, { ...step, to: "succeeded", ...(brokerOrderId !== undefined && { brokerOrderId }) })
        : await moveOrder(tx, { ...step, to: "pending", anew: true });
    if (!moved) throw refusalOf(order);
    await insertResolution(tx, { orderRowId: id, as, reason, by });
    return (await selectOrder(tx, id)) as OrderRow;
  });
}

// As long as most answers take.
const retryAfterSeconds = 5;

function refuseWithinWindow({ id, status, window_left_ms }: LockedOrder): void {
  if (status !== "unknown" || window_left_ms === null || window_left_ms <= 0) return;
  const seconds = Math.ceil(window_left_ms / 1_000);
  throw orderWindowOpen(
    `the broker may still take a request for order ${id}; in ${seconds} s it no longer can, and until then nobody can know`,
    { retryAfterSeconds: seconds },
  );
}

/** The row is locked: an order in doubt that could not be moved is held by whoever asks about it. */
function refusalOf({ id, status }: LockedOrder) {
  if (status === "unknown")
    return orderInHand(`the broker is being asked about order ${id} right now; try again in a moment`, {
      retryAfterSeconds,
    });
  if (status === "sending")
    return orderInHand(`order ${id} is being sent right now; look at it again in a moment`, { retryAfterSeconds });
  return orderNotUnresolved(`order ${id} is ${status}`);
}
