/**
 * What a request to order something is: the same request, written in another order of its fields or in another form of the
 * same characters, has the same digest, whenever and wherever it is sent again.
 *
 * `trace_id` and `idempotency_key` are not part of it: a retry may come in another trace, and the key names the request.
 */
import { hash } from "node:crypto";
import { canonicalJson } from "@todoke/kernel/idempotency";
import { type Decimal, parseDecimal, textOfDecimal } from "./decimal.ts";

export type Side = "BUY" | "SELL";
export type TimeInForce = "IOC" | "FOK" | "GTC";

/** The body of POST /do/order, as its schema has checked it. */
export interface OrderBody {
  readonly idempotency_key: string;
  readonly order_id: string;
  /** The player for whom the order is placed. */
  readonly user_id?: string;
  readonly instrument: string;
  readonly side: Side;
  readonly qty: number | string;
  readonly price: number | string | null;
  readonly time_in_force?: TimeInForce;
  readonly tags?: readonly string[];
  readonly requested_at: string;
  readonly risk_constraints?: { readonly max_notional?: number | string; readonly max_slippage_bps?: number };
  readonly trace_id?: string;
}

/** "sha256:" and 64 hex digits. */
export function requestDigest({ trace_id: _, idempotency_key: __, ...request }: OrderBody): string {
  return `sha256:${hash("sha256", canonicalJson(inNfc(request)), "hex")}`;
}

function inNfc(value: unknown): unknown {
  if (typeof value === "string") return value.normalize("NFC");
  if (Array.isArray(value)) return value.map(inNfc);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.normalize("NFC"), inNfc(each)]));
}

/**
 * What the broker knows an order by. The same over retries, processes and deploys, for ever: it is what keeps an order from
 * being taken twice. A key has no NUL, so no two pairs of caller and key share a text.
 */
export const clientOrderId = (caller: string, idempotencyKey: string): string =>
  `${clientOrderIdPrefix}${hash("sha256", `${caller}\0${idempotencyKey}`, "hex").slice(0, 40)}`;

/** All of ours begin with it: at the broker they can be told from those of others. */
export const clientOrderIdPrefix = "tdk-";

/** A request whose decimals are exact, with what was left out filled in. */
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

/** Undefined where a number is no decimal within bounds, with the field's name for whoever refuses it. */
export function orderRequest(body: OrderBody): OrderRequest | { readonly notDecimal: string } {
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

/** As it is kept (order_request_json): text in NFC, decimals as text, so that nobody reads them as doubles. */
export function keptRequest(order: OrderRequest): Readonly<Record<string, unknown>> {
  const { qty, price, max_notional, max_slippage_bps, ...rest } = order;
  return {
    ...rest,
    qty: textOfDecimal(qty),
    price: price && textOfDecimal(price),
    risk_constraints: { max_slippage_bps, max_notional: max_notional && textOfDecimal(max_notional) },
  };
}
