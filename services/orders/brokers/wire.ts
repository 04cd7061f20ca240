/** What a broker's answer means, whichever way it came. */
import type { WireOrder } from "./http/protocol.ts";
import type { BrokerResult, Rejected, Taken } from "./index.ts";

export function outcomeOfOrder(order: WireOrder, evidence: string): Taken | Rejected {
  if (order.status === "rejected")
    return { kind: "rejected", why: order.why ?? "the broker did not say why", evidence };
  return { kind: "taken", result: resultOf(order, order.status), evidence };
}

export function resultOf(order: WireOrder, status: BrokerResult["status"]): BrokerResult {
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
  };
}

export interface Promised {
  /** The timestamp of the last request. */
  readonly lastSentAt: Date;
  /** For so long after its timestamp a request may be taken. */
  readonly windowMs: number;
  /** What the broker may need between looking at its clock and having the order in its books. */
  readonly marginMs: number;
}

/** A broker that has not got an order will never have it, once its own clock has passed the window of the last request. */
export function neverOrNotYet(at: Date, { lastSentAt, windowMs, marginMs }: Promised): { kind: "never" | "not-yet" } {
  return { kind: at.getTime() > lastSentAt.getTime() + windowMs + marginMs ? "never" : "not-yet" };
}
