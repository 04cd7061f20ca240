/** From an order in a broker's reply to the outcome of a call. */
import type { WireFill, WireOrder } from "./http/protocol.ts";
import type { BrokerFill, BrokerResult, Rejected, Taken } from "./index.ts";

export function toOutcome(order: WireOrder, evidence: string): Taken | Rejected {
  if (order.status === "rejected")
    return { kind: "rejected", reason: order.why ?? "the broker gave no reason", evidence };
  return { kind: "taken", result: toResult(order, order.status), evidence };
}

export function toResult(order: WireOrder, status: BrokerResult["status"]): BrokerResult {
  return {
    clientOrderId: order.client_order_id,
    brokerOrderId: order.broker_order_id,
    instrument: order.instrument,
    side: order.side,
    qty: order.qty,
    filledQty: order.filled_qty,
    price: order.price,
    status,
    takenAt: order.taken_at,
    ...(order.fills && { fills: order.fills.map(toFill) }),
  };
}

export const toFill = ({ trade_id, qty, price, filled_at }: WireFill): BrokerFill => ({
  tradeId: trade_id,
  qty,
  price,
  filledAt: filled_at,
});

export interface SendWindow {
  /** The timestamp of the last request. */
  readonly lastSentAt: Date;
  /** How long after its timestamp a request may be taken. */
  readonly windowMs: number;
  /** The time between the broker's check of its clock and the order being visible. */
  readonly marginMs: number;
}

/** A broker without the order will never have it once its own clock has passed the window of the last request. */
export function notTakenOrNotYet(
  at: Date,
  { lastSentAt, windowMs, marginMs }: SendWindow,
): { kind: "not-taken" | "not-taken-yet" } {
  const windowEndsAt = lastSentAt.getTime() + windowMs + marginMs;
  return { kind: at.getTime() > windowEndsAt ? "not-taken" : "not-taken-yet" };
}
