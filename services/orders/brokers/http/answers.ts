/** Reads a broker's answers. Only what is said in the broker's own words counts: a proxy's 404 proves nothing. */
import { describeError } from "@todoke/kernel/worker";
import type { SendOutcome } from "../index.ts";
import { outcomeOfOrder } from "../wire.ts";
import { type BrokerAnswer, ExchangeFailed } from "./exchange.ts";
import type { WireOrder } from "./protocol.ts";

/** What an answer says, whatever its status is. Undefined where it is no JSON object. */
export type Said = Readonly<Record<string, unknown>>;

export function saidIn({ body }: BrokerAnswer): Said | undefined {
  try {
    const said: unknown = JSON.parse(body);
    return typeof said === "object" && said !== null ? (said as Said) : undefined;
  } catch {
    return undefined;
  }
}

const statuses = ["filled", "open", "expired", "cancelled", "rejected"];
const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 256;

/** The order in an answer, if it is all there and the one that was meant. */
export function orderIn(said: Said | undefined, clientOrderId?: string): WireOrder | undefined {
  if (!said) return undefined;
  const texts = ["client_order_id", "broker_order_id", "instrument", "side", "qty", "filled_qty", "taken_at"];
  const isWhole = texts.every((name) => isText(said[name])) && (said.price === null || isText(said.price));
  const isMeant = clientOrderId === undefined || said.client_order_id === clientOrderId;
  const isKnown = statuses.includes(said.status as string) && (said.why === undefined || isText(said.why));
  return isWhole && isMeant && isKnown ? (said as unknown as WireOrder) : undefined;
}

/** What a sent order's answer means. */
export function outcomeOfSend(answer: BrokerAnswer, clientOrderId: string): SendOutcome {
  const { status, body } = answer;
  const said = saidIn(answer);
  const code = said?.code;
  if (status === 200 || status === 201) {
    const order = orderIn(said, clientOrderId);
    return order ? outcomeOfOrder(order, body) : { kind: "unknown", code: "INTERNAL_ERROR", why: unread(answer) };
  }
  if (status === 409 && code === "ALREADY_PROCESSED")
    return { kind: "already", why: "the broker has this order already" };
  if (status === 422 && code === "REJECTED") return { kind: "rejected", why: whyOf(said), evidence: body };
  if ((status === 429 || status === 503) && code === "NOT_TAKEN") {
    const retryAfterMs = retryAfterMsOf(answer.headers["retry-after"]);
    const reason = status === 429 ? "BROKER_RATE_LIMITED" : "BROKER_DOWN";
    return { kind: "not-taken", code: reason, why: `the broker answered ${status}: ${whyOf(said)}`, retryAfterMs };
  }
  if (status === 401 && (code === "STALE" || code === "BAD_SIGNATURE")) {
    return { kind: "not-taken", code: "INTERNAL_ERROR", why: `the broker refused our signature: ${code}` };
  }
  return { kind: "unknown", code: status >= 500 ? "BROKER_DOWN" : "INTERNAL_ERROR", why: unread(answer) };
}

/** When the broker said, by its own clock, that it has not got the order. */
export function notFoundAt(answer: BrokerAnswer): Date | undefined {
  const said = answer.status === 404 ? saidIn(answer) : undefined;
  return said?.code === "NOT_FOUND" && typeof said.at === "number" ? new Date(said.at) : undefined;
}

export function outcomeOfFailedSend(error: unknown): SendOutcome {
  const why = describeError(error);
  const nothingLeft = error instanceof ExchangeFailed && error.nothingLeft;
  return nothingLeft
    ? { kind: "not-taken", code: "BROKER_DOWN", why }
    : { kind: "unknown", code: "BROKER_TIMEOUT", why };
}

export const unread = ({ status, body }: BrokerAnswer): string =>
  `the broker answered ${status}, which does not say what became of it: ${body.slice(0, 200)}`;

const whyOf = (said: Said | undefined) => (isText(said?.why) ? said.why : "it did not say why");

// What a broker asks for is honoured up to here: an order is not put off for days by a wrong header.
const retryAfterMaxMs = 60 * 60 * 1_000;

/** Seconds; 0 where it is anything else. */
function retryAfterMsOf(header = ""): number {
  return /^\d{1,6}$/.test(header) ? Math.min(Number(header) * 1_000, retryAfterMaxMs) : 0;
}
