/**
 * An operator resolves an order that the broker could not: it was taken, and succeeds; or it was not, and is sent again with all its
 * attempts. The operator and the reason are stored in the same transaction.
 *
 * The broker's reply goes first. While the order is being sent or checked, a reply may be on its way, and to send the order again
 * could double it. The same holds within the broker's window: a delayed request may still be taken. Only for a broker without a
 * window is that the operator's decision.
 */
import { recordStaffAct, type StaffActor } from "@todoke/http";
import { afterCommit, type Db, type Tx, transaction } from "@todoke/kernel/db";
import { type CommandResponse, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { orderInHand, orderNotFound, orderNotUnresolved, orderWindowOpen } from "../problems.ts";
import { type LockedOrder, lockOrder, type OrderRow, selectOrder } from "../store/orders.ts";
import { insertResolution, type Resolution } from "../store/resolutions.ts";
import { transitionOrder } from "../store/transition-order.ts";

export interface ResolveRequest extends Omit<Resolution, "orderRowId"> {
  /** outbox_orders.id */
  readonly id: string;
  /** The broker's ID of a taken order, if known. */
  readonly brokerOrderId?: string | undefined;
}

export const resolveOrder = (db: Db, request: ResolveRequest): Promise<OrderRow> =>
  transaction(db, (tx) => resolve(tx, request));

export interface StaffResolveRequest extends Omit<ResolveRequest, "by"> {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
}

/** The same by staff over HTTP: once per key, and with a record of the act. */
export const resolveOrderAsStaff =
  (db: Db, onResolved: () => void) =>
  ({ key, actor, ...request }: StaffResolveRequest): Promise<CommandResponse> =>
    once(db, key, async (tx) => {
      const { id, as, reason, brokerOrderId } = request;
      const order = await resolve(tx, { ...request, by: actor.name });
      const details = { as, ...(brokerOrderId !== undefined && { broker_order_id: brokerOrderId }) };
      await recordStaffAct(tx, { actor, act: "resolveOrder", target: id, reason, details });
      afterCommit(tx, onResolved);
      return { status: 200, body: order };
    });

async function resolve(tx: Tx, { id, as, reason, by, brokerOrderId }: ResolveRequest): Promise<OrderRow> {
  const order = await lockOrder(tx, id);
  if (!order) throw orderNotFound(`There is no order ${id}.`);
  if (as === "not-taken") rejectWithinWindow(order);
  const target =
    as === "taken"
      ? ({ to: "succeeded", ...(brokerOrderId !== undefined && { brokerOrderId }) } as const)
      : ({ to: "pending", resetAttempts: true } as const);
  const applied = await transitionOrder(tx, { ...target, id, epoch: null, from: ["unknown"], by });
  if (!applied) throw notResolvable(order);
  await insertResolution(tx, { orderRowId: id, as, reason, by });
  return (await selectOrder(tx, id)) as OrderRow;
}

// Most replies take less.
const retryAfterSeconds = 5;

function rejectWithinWindow({ id, status, window_left_ms }: LockedOrder): void {
  if (status !== "unknown" || window_left_ms === null || window_left_ms <= 0) return;
  const seconds = Math.ceil(window_left_ms / 1_000);
  throw orderWindowOpen(`The broker may still take order ${id} for ${seconds} s. Resolve it after that.`, {
    retryAfterSeconds: seconds,
  });
}

/** The row is locked: an unresolved order to which the transition did not apply is claimed by a checker. */
function notResolvable({ id, status }: LockedOrder) {
  if (status === "unknown")
    return orderInHand(`The broker is being asked about order ${id}. Retry in a moment.`, { retryAfterSeconds });
  if (status === "sending")
    return orderInHand(`Order ${id} is being sent. Look at it again in a moment.`, { retryAfterSeconds });
  return orderNotUnresolved(`Order ${id} is ${status}.`);
}
