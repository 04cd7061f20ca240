/**
 * The protocol between the http adapter and a broker.
 *
 * HMAC-SHA256 over method, path, timestamp (ms since 1970, by the broker's clock), nonce and body, each on its own line.
 * The broker refuses a wrong signature (401 BAD_SIGNATURE), a timestamp outside its window when it would take the order (401
 * STALE), and a used nonce (401 NONCE_USED).
 *
 *   POST   /orders                    201 the order; 409 ALREADY_PROCESSED; 422 REJECTED; 429 and 503 NOT_TAKEN
 *   GET    /orders/<client_order_id>  200 the order; 404 NOT_FOUND, with `at`, the broker's time
 *   DELETE /orders/<client_order_id>  200 the cancelled order, also if it was cancelled before; 409 TOO_LATE; 404 NOT_FOUND
 *   GET    /orders/<client_order_id>/fills?after=…
 *                                     200 {order, fills, next, more}; 404 NOT_FOUND
 *   GET    /orders?since=…&after=…    200 {orders, next}
 *
 * Fills come in the order of the trades, at most 100 in a reply, from the first without `after`. `next` is the position of the last
 * one, `after` of the next request; `more` says whether there are more now. `order` is the order as of this reply. An order may have
 * all its `fills` in it, in any reply; if it has ended and they add up to its filled_qty, they are not asked for.
 *
 * The body of POST is {client_order_id, instrument, side, qty, price, time_in_force}, and max_slippage_bps for a
 * market order (price null) that has one. A broker for which ORDERS_BROKER_LIMITS_SLIPPAGE is set returns 422 REJECTED if the fill
 * price would be worse than its mid price by more basis points than that.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export interface SignedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly timestamp: number;
  readonly nonce: string;
  readonly body: string;
}

export const headerNames = { timestamp: "x-timestamp", nonce: "x-nonce", signature: "x-signature" } as const;

export function sign(secret: string, { method, path, timestamp, nonce, body }: SignedRequest): string {
  return createHmac("sha256", secret).update([method, path, timestamp, nonce, body].join("\n")).digest("hex");
}

export function isSignedBy(secret: string, request: SignedRequest, signature: string): boolean {
  const [actual, expected] = [Buffer.from(signature), Buffer.from(sign(secret, request))];
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

/** An order in a broker's reply. */
export interface WireOrder {
  readonly client_order_id: string;
  readonly broker_order_id: string;
  readonly instrument: string;
  readonly side: string;
  readonly qty: string;
  readonly filled_qty: string;
  readonly price: string | null;
  readonly status: "filled" | "open" | "expired" | "cancelled" | "rejected";
  /** RFC 3339. */
  readonly taken_at: string;
  /** The reason of a rejection. */
  readonly why?: string;
  /** All fills so far. */
  readonly fills?: readonly WireFill[];
}

export interface WireFill {
  readonly trade_id: string;
  readonly qty: string;
  readonly price: string;
  /** RFC 3339. */
  readonly filled_at: string;
}
