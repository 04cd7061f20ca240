/**
 * The words that the http adapter and a broker exchange, and how a request is signed.
 *
 * HMAC-SHA256 over method, path, timestamp (ms since 1970, by the broker's clock), nonce and body, each on its own line.
 * A broker refuses a signature that is wrong (401 BAD_SIGNATURE), a timestamp that is further away than its window at the
 * moment at which it would take the order (401 STALE), and a nonce that it has seen (401 NONCE_USED).
 *
 *   POST   /orders                    201 the order; 409 ALREADY_PROCESSED; 422 REJECTED; 429 and 503 NOT_TAKEN
 *   GET    /orders/<client_order_id>  200 the order; 404 NOT_FOUND, with `at`, the broker's time
 *   DELETE /orders/<client_order_id>  200 the order, cancelled, also if it was before; 409 TOO_LATE; 404 NOT_FOUND
 *   GET    /orders?since=…&after=…    200 {orders, next}
 *
 * The body of POST is {client_order_id, instrument, side, qty, price, time_in_force}, with max_slippage_bps where an order at
 * the market's price (price null) has one: a broker for which ORDERS_BROKER_LIMITS_SLIPPAGE is set answers 422 REJECTED
 * rather than fill it at a price that is worse than the middle of its market by more than so many basis points.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export interface SignedRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly timestamp: number;
  readonly nonce: string;
  readonly body: string;
}

export const headerNames = { timestamp: "x-timestamp", nonce: "x-nonce", signature: "x-signature" } as const;

export function signatureOf(secret: string, { method, path, timestamp, nonce, body }: SignedRequest): string {
  return createHmac("sha256", secret).update([method, path, timestamp, nonce, body].join("\n")).digest("hex");
}

export function isSignedBy(secret: string, request: SignedRequest, signature: string): boolean {
  const [given, right] = [Buffer.from(signature), Buffer.from(signatureOf(secret, request))];
  return given.length === right.length && timingSafeEqual(given, right);
}

/** An order as it stands in a broker's answer. */
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
  /** Why it was rejected. */
  readonly why?: string;
}
