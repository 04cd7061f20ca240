/**
 * A broker behind HTTP: JSON, every request signed with a timestamp and a nonce (protocol.ts), the client order id as
 * Idempotency-Key. The broker's clock is measured from its Date header and allowed for, since its window counts by it.
 */
import { randomUUID } from "node:crypto";
import { describeError } from "@todoke/kernel/worker";
import type { Broker, BrokerResult, SendOutcome } from "../index.ts";
import { neverOrNotYet, outcomeOfOrder, resultOf } from "../wire.ts";
import { notFoundAt, orderIn, outcomeOfFailedSend, outcomeOfSend, saidIn, unread } from "./answers.ts";
import { measureDrift } from "./drift.ts";
import { type BrokerAnswer, exchange, openConnections } from "./exchange.ts";
import { headerNames, signatureOf } from "./protocol.ts";

export interface HttpBrokerOptions {
  readonly url: URL;
  readonly secret: string;
  readonly dedupes: boolean;
  /** For so long after its timestamp the broker may take an order; 0 where it promises nothing. */
  readonly windowMs: number;
  /** Whether it holds orders to their max_slippage_bps. */
  readonly limitsSlippage: boolean;
  readonly marginMs?: number;
  /** Told after every answer: the broker's clock minus ours. */
  readonly onDrift?: (driftMs: number) => void;
}

/** Orders are refused for this when they come in; one that was taken in under other settings ends here, unsent. */
const slippageNotLimited: SendOutcome = {
  kind: "rejected",
  why: "not sent: the broker does not hold orders to max_slippage_bps (ORDERS_BROKER_LIMITS_SLIPPAGE)",
  evidence: "",
};

interface Call {
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly stampedAt?: Date;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function openHttpBroker(options: HttpBrokerOptions): Broker {
  const { url, secret, dedupes, windowMs, limitsSlippage, marginMs = 1_000 } = options;
  const connections = openConnections(url.protocol);
  const base = url.pathname.replace(/\/$/, "");
  const drift = measureDrift(options.onDrift);

  async function call({ method, path, signal, stampedAt, body = "", headers }: Call): Promise<BrokerAnswer> {
    const timestamp = (stampedAt ?? drift.clock()).getTime();
    const signed = { method, path: base + path, timestamp, nonce: randomUUID(), body };
    const beganAt = Date.now();
    const answer = await exchange(connections, {
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
        [headerNames.signature]: signatureOf(secret, signed),
      },
    });
    drift.heard(answer.headers.date, { beganAt, endedAt: Date.now() });
    return answer;
  }

  const pathOf = (clientOrderId: string) => `/orders/${encodeURIComponent(clientOrderId)}`;

  return {
    name: "http",
    dedupes,
    windowMs: windowMs > 0 ? windowMs + marginMs : 0,
    clock: drift.clock,

    async send(order, { stampedAt, signal }) {
      const { clientOrderId, timeInForce, maxSlippageBps, ...rest } = order;
      const isLimited = maxSlippageBps !== null && order.price === null;
      if (isLimited && !limitsSlippage) return slippageNotLimited;
      const limit = isLimited ? { max_slippage_bps: maxSlippageBps } : {};
      const body = JSON.stringify({ client_order_id: clientOrderId, time_in_force: timeInForce, ...rest, ...limit });
      const headers = { "idempotency-key": clientOrderId };
      try {
        const answer = await call({ method: "POST", path: "/orders", body, headers, stampedAt, signal });
        return outcomeOfSend(answer, clientOrderId);
      } catch (error) {
        return outcomeOfFailedSend(error);
      }
    },

    async find(clientOrderId, { lastSentAt, signal }) {
      try {
        const answer = await call({ method: "GET", path: pathOf(clientOrderId), signal });
        const order = answer.status === 200 ? orderIn(saidIn(answer), clientOrderId) : undefined;
        if (order) return outcomeOfOrder(order, answer.body);
        const at = notFoundAt(answer);
        if (!at) return { kind: "unknown", why: unread(answer) };
        if (windowMs > 0) return neverOrNotYet(at, { lastSentAt, windowMs, marginMs });
        return dedupes
          ? { kind: "not-yet" }
          : { kind: "unknown", why: "the broker has not got it, and does not promise that it never will" };
      } catch (error) {
        return { kind: "unknown", why: describeError(error) };
      }
    },

    async cancel(clientOrderId, signal) {
      try {
        const answer = await call({ method: "DELETE", path: pathOf(clientOrderId), signal });
        const said = saidIn(answer);
        if (answer.status === 200 && orderIn(said, clientOrderId)?.status === "cancelled") {
          return { kind: "cancelled", why: "the broker has cancelled it" };
        }
        if (answer.status === 409 && said?.code === "TOO_LATE") return { kind: "too-late", why: String(said.why) };
        if (notFoundAt(answer) !== undefined) {
          return { kind: "not-found", why: "the broker does not know it" };
        }
        return { kind: "unknown", why: unread(answer) };
      } catch (error) {
        return { kind: "unknown", why: describeError(error) };
      }
    },

    async *list(since, signal): AsyncIterable<BrokerResult> {
      for (let after: string | undefined; ; ) {
        const query = new URLSearchParams({ since: String(since.getTime()), ...(after !== undefined && { after }) });
        const answer = await call({ method: "GET", path: `/orders?${query}`, signal });
        const said = saidIn(answer);
        if (answer.status !== 200 || !Array.isArray(said?.orders)) throw new Error(unread(answer));
        for (const each of said.orders) {
          const order = orderIn(each);
          if (!order) throw new Error("an order in the broker's list cannot be read");
          if (order.status !== "rejected") yield resultOf(order, order.status);
        }
        if (typeof said.next !== "string" || said.next === after) return;
        after = said.next;
      }
    },

    async [Symbol.asyncDispose]() {
      connections.destroy();
    },
  };
}
