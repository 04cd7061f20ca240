/**
 * The request to place an order, and its digest. The digest does not depend on the order of fields or on the Unicode form, nor on
 * `trace_id` and `idempotency_key`: a retry may have another trace, and the key names the request.
 */

import { hash } from "node:crypto";
import { canonicalJson } from "@todoke/kernel/idempotency";
import type { Static } from "typebox";
import type { OrderBody as OrderSchema } from "../routes/schemas.ts";
import { type Decimal, formatDecimal, parseDecimal } from "./decimal.ts";

export type Side = "BUY" | "SELL";
export type TimeInForce = "IOC" | "FOK" | "GTC";

/** The body of POST /do/order, after the schema check. */
export type OrderBody = Readonly<Static<typeof OrderSchema>>;

/** "sha256:" and 64 hex digits. */
export function requestDigest({ trace_id: _, idempotency_key: __, ...request }: OrderBody): string {
  return `sha256:${hash("sha256", canonicalJson(toNfc(request)), "hex")}`;
}

function toNfc(value: unknown): unknown {
  if (typeof value === "string") return value.normalize("NFC");
  if (Array.isArray(value)) return value.map(toNfc);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.normalize("NFC"), toNfc(each)]));
}

/**
 * The order's ID at the broker, by which the broker deduplicates. It must never change between retries, processes and deploys. A
 * key has no NUL, so no two pairs of caller and key have the same ID.
 */
export const clientOrderId = (caller: string, idempotencyKey: string): string =>
  `${clientOrderIdPrefix}${hash("sha256", `${caller}\0${idempotencyKey}`, "hex").slice(0, 40)}`;

/** Distinguishes our orders from those of others at the broker. */
export const clientOrderIdPrefix = "tdk-";

/** A request with exact decimals and with defaults. */
export interface OrderRequest {
  readonly order_id: string;
  readonly user_id?: string;
  readonly instrument: string;
  readonly side: Side;
  readonly qty: Decimal;
  readonly price: Decimal | null;
  readonly time_in_force: TimeInForce;
  readonly tags: readonly string[];
  readonly requested_at: string;
  readonly max_notional?: Decimal;
  readonly max_slippage_bps?: number;
}

/** `notDecimal` names a field that is not a decimal within bounds. */
export function parseOrderRequest(body: OrderBody): OrderRequest | { readonly notDecimal: string } {
  const { risk_constraints: risk = {} } = body;
  const qty = parseDecimal(body.qty);
  if (!qty) return { notDecimal: "qty" };
  const price = body.price === null ? null : parseDecimal(body.price);
  if (price === undefined) return { notDecimal: "price" };
  const max_notional = risk.max_notional === undefined ? undefined : parseDecimal(risk.max_notional);
  if (risk.max_notional !== undefined && !max_notional) return { notDecimal: "risk_constraints.max_notional" };
  return {
    order_id: body.order_id,
    ...(body.user_id !== undefined && { user_id: body.user_id }),
    instrument: body.instrument.normalize("NFC"),
    side: body.side,
    qty,
    price,
    time_in_force: body.time_in_force ?? "IOC",
    tags: (body.tags ?? []).map((tag) => tag.normalize("NFC")),
    requested_at: body.requested_at,
    ...(max_notional && { max_notional }),
    ...(risk.max_slippage_bps !== undefined && { max_slippage_bps: risk.max_slippage_bps }),
  };
}

/** As stored in order_request_json: NFC, and decimals as strings, so that they are not read as doubles. */
export function toStoredRequest(order: OrderRequest): Readonly<Record<string, unknown>> {
  const { qty, price, max_notional, max_slippage_bps, ...rest } = order;
  return {
    ...rest,
    qty: formatDecimal(qty),
    price: price && formatDecimal(price),
    risk_constraints: { max_slippage_bps, max_notional: max_notional && formatDecimal(max_notional) },
  };
}
