/**
 * A broker over HTTP: JSON, every request signed with a timestamp and a nonce (protocol.ts), the client order ID as
 * Idempotency-Key. The broker's window counts by its own clock, so its drift is measured and allowed for.
 */
import { randomUUID } from "node:crypto";
import { describeError } from "@todoke/kernel/worker";
import type { Broker, BrokerResult, HttpBrokerSettings, SendOutcome } from "../index.ts";
import { notTakenOrNotYet, toFill, toOutcome, toResult } from "../outcomes.ts";
import { measureDrift } from "./clock-drift.ts";
import { type BrokerReply, exchange, openConnections } from "./exchange.ts";
import { headerNames, sign } from "./protocol.ts";
import {
  describeReply,
  failedSendOutcome,
  parseBrokerReply,
  parseFillsReply,
  parseNotFoundTime,
  parseOrder,
  toSendOutcome,
} from "./replies.ts";

export interface HttpBrokerOptions extends Omit<HttpBrokerSettings, "kind"> {
  readonly marginMs?: number;
  /** Called after every reply with the broker's clock minus ours. */
  readonly onDrift?: (driftMs: number) => void;
}

/** Such orders are rejected when they are placed; this ends one that was accepted under other settings. */
const slippageNotLimited: SendOutcome = {
  kind: "rejected",
  reason: "not sent: the broker does not limit slippage (ORDERS_BROKER_LIMITS_SLIPPAGE)",
  evidence: "",
};

interface Call {
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly timestamp?: Date;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function openHttpBroker(options: HttpBrokerOptions): Broker {
  const { url, secret, dedupes, windowMs, limitsSlippage, marginMs = 1_000 } = options;
  const connections = openConnections(url.protocol);
  const base = url.pathname.replace(/\/$/, "");
  const drift = measureDrift(options.onDrift);

  async function call({ method, path, signal, timestamp: at, body = "", headers }: Call): Promise<BrokerReply> {
    const timestamp = (at ?? drift.clock()).getTime();
    const signed = { method, path: base + path, timestamp, nonce: randomUUID(), body };
    const startedAt = performance.now();
    const reply = await exchange(connections, {
      url: new URL(base + path, url),
      method,
      body,
      signal,
      headers: {
        "content-type": "application/json",
        "user-agent": "todoke",
        ...headers,
        [headerNames.timestamp]: String(timestamp),
        [headerNames.nonce]: signed.nonce,
        [headerNames.signature]: sign(secret, signed),
      },
    });
    drift.observe(reply.headers.date, { startedAt, endedAt: performance.now() });
    return reply;
  }

  const orderPath = (clientOrderId: string) => `/orders/${encodeURIComponent(clientOrderId)}`;

  return {
    name: "http",
    dedupes,
    windowMs: windowMs > 0 ? windowMs + marginMs : 0,
    clock: drift.clock,

    async measureClock(signal) {
      if (drift.isMeasured()) return undefined;
      try {
        // Any reply has the broker's time, also "not found" and a refused timestamp.
        await call({ method: "GET", path: orderPath(randomUUID()), signal });
        return undefined;
      } catch (error) {
        return `the broker's clock could not be measured: ${describeError(error)}`;
      }
    },

    async send(order, { timestamp, signal }) {
      const { clientOrderId, timeInForce, maxSlippageBps, ...rest } = order;
      const isLimited = maxSlippageBps !== null && order.price === null;
      if (isLimited && !limitsSlippage) return slippageNotLimited;
      const limit = isLimited ? { max_slippage_bps: maxSlippageBps } : {};
      const body = JSON.stringify({ client_order_id: clientOrderId, time_in_force: timeInForce, ...rest, ...limit });
      const headers = { "idempotency-key": clientOrderId };
      try {
        const reply = await call({ method: "POST", path: "/orders", body, headers, timestamp, signal });
        return toSendOutcome(reply, clientOrderId);
      } catch (error) {
        return failedSendOutcome(error);
      }
    },

    async find(clientOrderId, { lastSentAt, signal }) {
      try {
        const reply = await call({ method: "GET", path: orderPath(clientOrderId), signal });
        const order = reply.status === 200 ? parseOrder(parseBrokerReply(reply), clientOrderId) : undefined;
        if (order) return toOutcome(order, reply.body);
        const at = parseNotFoundTime(reply);
        if (!at) return { kind: "unknown", reason: describeReply(reply) };
        if (windowMs > 0) return notTakenOrNotYet(at, { lastSentAt, windowMs, marginMs });
        return dedupes
          ? { kind: "not-taken-yet" }
          : { kind: "unknown", reason: "the broker does not have the order, but may still take it" };
      } catch (error) {
        return { kind: "unknown", reason: describeError(error) };
      }
    },

    async cancel(clientOrderId, signal) {
      try {
        const reply = await call({ method: "DELETE", path: orderPath(clientOrderId), signal });
        const body = parseBrokerReply(reply);
        if (reply.status === 200 && parseOrder(body, clientOrderId)?.status === "cancelled")
          return { kind: "cancelled", reason: "the broker has cancelled it" };
        if (reply.status === 409 && body?.code === "TOO_LATE") return { kind: "too-late", reason: String(body.why) };
        if (parseNotFoundTime(reply)) return { kind: "not-found", reason: "the broker does not have the order" };
        return { kind: "unknown", reason: describeReply(reply) };
      } catch (error) {
        return { kind: "unknown", reason: describeError(error) };
      }
    },

    async fills(clientOrderId, { after, signal }) {
      try {
        const query = after === null ? "" : `?${new URLSearchParams({ after })}`;
        const reply = await call({ method: "GET", path: `${orderPath(clientOrderId)}/fills${query}`, signal });
        if (parseNotFoundTime(reply)) return { kind: "not-found", reason: "the broker does not have the order" };
        const read = reply.status === 200 ? parseFillsReply(parseBrokerReply(reply), clientOrderId) : undefined;
        if (!read) return { kind: "unknown", reason: describeReply(reply) };
        const { order, fills, next, more } = read;
        if (order.status === "rejected") return { kind: "not-found", reason: "the broker has rejected the order" };
        const result = toResult(order, order.status);
        return { kind: "fills", fills: fills.map(toFill), position: next ?? after, hasMore: more, order: result };
      } catch (error) {
        return { kind: "unknown", reason: describeError(error) };
      }
    },

    async *list(since, signal): AsyncIterable<BrokerResult> {
      for (let after: string | undefined; ; ) {
        const query = new URLSearchParams({ since: String(since.getTime()), ...(after !== undefined && { after }) });
        const reply = await call({ method: "GET", path: `/orders?${query}`, signal });
        const body = parseBrokerReply(reply);
        if (reply.status !== 200 || !Array.isArray(body?.orders)) throw new Error(describeReply(reply));
        for (const each of body.orders) {
          const order = parseOrder(each);
          if (!order) throw new Error("an order in the broker's list cannot be parsed");
          if (order.status !== "rejected") yield toResult(order, order.status);
        }
        if (typeof body.next !== "string" || body.next === after) return;
        after = body.next;
      }
    },

    async [Symbol.asyncDispose]() {
      connections.destroy();
    },
  };
}
