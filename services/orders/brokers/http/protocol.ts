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
 *   GET    /orders?since=…&after=…    200 {orders, next}
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
}
