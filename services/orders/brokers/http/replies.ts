/** Parses a broker's replies. Only replies in the broker's protocol count: a proxy's 404 proves nothing. */
import { describeError } from "@todoke/kernel/worker";
import type { SendOutcome } from "../index.ts";
import { toOutcome } from "../outcomes.ts";
import { type BrokerReply, ExchangeError } from "./exchange.ts";
import type { WireFill, WireOrder } from "./protocol.ts";

export type ReplyBody = Readonly<Record<string, unknown>>;

/** The JSON object in a reply of any status; undefined if there is none. */
export function parseBrokerReply({ body }: BrokerReply): ReplyBody | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === "object" && parsed !== null ? (parsed as ReplyBody) : undefined;
  } catch {
    return undefined;
  }
}

const statuses = ["filled", "open", "expired", "cancelled", "rejected"];
const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 256;

/** The order in a reply, if it is complete and has the expected ID. */
export function parseOrder(body: ReplyBody | undefined, clientOrderId?: string): WireOrder | undefined {
  if (!body) return undefined;
  const texts = ["client_order_id", "broker_order_id", "instrument", "side", "qty", "filled_qty", "taken_at"];
  const isComplete = texts.every((name) => isText(body[name])) && (body.price === null || isText(body.price));
  const isExpected = clientOrderId === undefined || body.client_order_id === clientOrderId;
  const isKnown = statuses.includes(body.status as string) && (body.why === undefined || isText(body.why));
  if (!isComplete || !isExpected || !isKnown) return undefined;
  const { fills, ...order } = body as unknown as WireOrder;
  // Without them the broker is asked for the fills.
  const known = parseFills(fills);
  return { ...order, ...(known && { fills: known }) };
}

// A page of fills, with room to spare.
const fillsMax = 1_000;
const isPositiveDecimal = (value: unknown) =>
  isText(value) && /^[0-9]{1,64}(?:\.[0-9]{1,64})?$/.test(value) && /[1-9]/.test(value);

/** Undefined if one of them is not a fill. */
function parseFills(fills: unknown): readonly WireFill[] | undefined {
  if (!Array.isArray(fills) || fills.length > fillsMax) return undefined;
  const isFill = (fill: Partial<WireFill> | null) =>
    isText(fill?.trade_id) &&
    fill.trade_id !== "" &&
    isPositiveDecimal(fill.qty) &&
    isPositiveDecimal(fill.price) &&
    isText(fill.filled_at) &&
    !Number.isNaN(Date.parse(fill.filled_at));
  return fills.every(isFill) ? fills : undefined;
}

/** The reply to a request for fills; undefined if it is not complete. */
export function parseFillsReply(body: ReplyBody | undefined, clientOrderId: string) {
  const order = parseOrder(body?.order as ReplyBody | undefined, clientOrderId);
  const fills = parseFills(body?.fills);
  const next = body?.next ?? null;
  if (!order || !fills || !(next === null || isText(next)) || typeof body?.more !== "boolean") return undefined;
  return { order, fills, next, more: body.more };
}

export function toSendOutcome(reply: BrokerReply, clientOrderId: string): SendOutcome {
  const { status, body: evidence } = reply;
  const body = parseBrokerReply(reply);
  const code = body?.code;
  if (status === 200 || status === 201) {
    const order = parseOrder(body, clientOrderId);
    return order
      ? toOutcome(order, evidence)
      : { kind: "unknown", code: "INTERNAL_ERROR", reason: describeReply(reply) };
  }
  if (status === 409 && code === "ALREADY_PROCESSED")
    return { kind: "already-taken", reason: "the broker already has this order" };
  if (status === 422 && code === "REJECTED") return { kind: "rejected", reason: parseReason(body), evidence };
  if ((status === 429 || status === 503) && code === "NOT_TAKEN") {
    const retryAfterMs = parseRetryAfterMs(reply.headers["retry-after"]);
    const cause = status === 429 ? "BROKER_RATE_LIMITED" : "BROKER_DOWN";
    const reason = `the broker returned ${status}: ${parseReason(body)}`;
    return { kind: "not-taken", code: cause, reason, retryAfterMs };
  }
  if (status === 401 && (code === "STALE" || code === "BAD_SIGNATURE"))
    return { kind: "not-taken", code: "INTERNAL_ERROR", reason: `the broker refused our signature: ${code}` };
  return {
    kind: "unknown",
    code: status >= 500 ? "BROKER_DOWN" : "INTERNAL_ERROR",
    reason: describeReply(reply),
  };
}

/** The broker's time at which it did not have the order. */
export function parseNotFoundTime(reply: BrokerReply): Date | undefined {
  const body = reply.status === 404 ? parseBrokerReply(reply) : undefined;
  return body?.code === "NOT_FOUND" && typeof body.at === "number" ? new Date(body.at) : undefined;
}

export function failedSendOutcome(error: unknown): SendOutcome {
  const reason = describeError(error);
  const nothingSent = error instanceof ExchangeError && error.nothingSent;
  return nothingSent
    ? { kind: "not-taken", code: "BROKER_DOWN", reason }
    : { kind: "unknown", code: "BROKER_TIMEOUT", reason };
}

export const describeReply = ({ status, body }: BrokerReply): string =>
  `the broker returned ${status} without a result: ${body.slice(0, 200)}`;

const parseReason = (body: ReplyBody | undefined) => (isText(body?.why) ? body.why : "no reason given");

// A longer Retry-After is not believed: a wrong header must not delay an order for days.
const retryAfterMaxMs = 60 * 60 * 1_000;

/** The header in seconds; 0 in any other form. */
function parseRetryAfterMs(header = ""): number {
  return /^\d{1,6}$/.test(header) ? Math.min(Number(header) * 1_000, retryAfterMaxMs) : 0;
}
