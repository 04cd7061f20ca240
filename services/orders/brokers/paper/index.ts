/**
 * A broker on paper: takes orders into a schema of its own, fills them at a simple price, and can fail in every way that
 * a real one can. It shares a server with the service and nothing else: no table, no transaction, only this port.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Db, migrate } from "@todoke/kernel/db";
import { describeError } from "@todoke/kernel/worker";
import { type Fault, type FaultPlan, faultPlan } from "../faults.ts";
import type { Broker, BrokerResult, SendOutcome } from "../index.ts";
import { neverOrNotYet, outcomeOfOrder, resultOf } from "../wire.ts";
import { cancelOrder, enterOrder, findOrder, listOrders } from "./store.ts";

export interface PaperBrokerOptions {
  readonly db: Db;
  /** What goes wrong, and how often. */
  readonly faults?: ReadonlyMap<Fault, number>;
  /** Instead of `faults`: what goes wrong, order by order. */
  readonly plan?: FaultPlan;
  readonly windowMs?: number;
  /** A statement that began within the window has ended by then: the pool gives none more than 12 s. */
  readonly marginMs?: number;
  /** How long a slow or late answer takes. */
  readonly slowMs?: number;
}

const pageMax = 500;

/** Makes its schema where there is none. */
export async function openPaperBroker(options: PaperBrokerOptions): Promise<Broker> {
  const { db, plan = faultPlan(options.faults, Date.now()), windowMs = 30_000 } = options;
  const { marginMs = 12_000, slowMs = 15_000 } = options;
  await migrate(db, {
    schema: "paper_broker",
    sets: [{ name: "paper_broker", dir: new URL("./migrations/", import.meta.url) }],
  });
  const { rows } = await db.query<{ at: Date }>("select clock_timestamp() as at");
  const driftMs = (rows[0] as { at: Date }).at.getTime() - Date.now();

  const send: Broker["send"] = async (order, { stampedAt, signal }) => {
    const fault = plan.next();
    const refusal = refusalOf(fault);
    if (refusal) return refusal;
    if (fault === "late" && !(await waited(slowMs, signal))) {
      // Nobody waits any more, and it is taken all the same, if the window still lets it.
      void enterOrder(db, { order, stampedAt, windowMs, reject: false }).catch(() => {});
      return noAnswer;
    }
    const entry = { order, stampedAt, windowMs, reject: fault === "reject" };
    try {
      const { isNew, order: entered } = await enterOrder(db, entry);
      if (!entered) {
        return { kind: "not-taken", code: "INTERNAL_ERROR", why: "the timestamp is not within the broker's window" };
      }
      if (fault === "slow") await waited(slowMs, signal);
      if (fault === "lost-after" || signal.aborted) return noAnswer;
      if (fault === "error-after") return { kind: "unknown", code: "BROKER_DOWN", why: "the broker answered 500" };
      if (!isNew || fault === "already") return { kind: "already", why: "the broker has this order already" };
      return outcomeOfOrder(entered, JSON.stringify(entered));
    } catch (error) {
      return { kind: "unknown", code: "BROKER_DOWN", why: describeError(error) };
    }
  };

  return {
    name: "paper",
    dedupes: true,
    windowMs: windowMs + marginMs,
    clock: () => new Date(Date.now() + driftMs),
    send,

    async find(clientOrderId, { lastSentAt }) {
      try {
        const { at, order } = await findOrder(db, clientOrderId);
        return order
          ? outcomeOfOrder(order, JSON.stringify(order))
          : neverOrNotYet(at, { lastSentAt, windowMs, marginMs });
      } catch (error) {
        return { kind: "unknown", why: describeError(error) };
      }
    },

    async cancel(clientOrderId) {
      try {
        if (await cancelOrder(db, clientOrderId)) return { kind: "cancelled", why: "it was open" };
        const { order } = await findOrder(db, clientOrderId);
        if (!order) return { kind: "not-found", why: "the broker does not know it" };
        return order.status === "cancelled"
          ? { kind: "cancelled", why: "it was cancelled before" }
          : { kind: "too-late", why: `it is ${order.status}` };
      } catch (error) {
        return { kind: "unknown", why: describeError(error) };
      }
    },

    async *list(since, signal): AsyncIterable<BrokerResult> {
      for (let after = 0n; ; ) {
        signal.throwIfAborted();
        const page = await listOrders(db, { since, after, limit: pageMax });
        for (const { position, ...order } of page) {
          after = position;
          if (order.status !== "rejected") yield resultOf(order, order.status);
        }
        if (page.length < pageMax) return;
      }
    },

    async [Symbol.asyncDispose]() {},
  };
}

const noAnswer: SendOutcome = { kind: "unknown", code: "BROKER_TIMEOUT", why: "the broker did not answer" };

/** Faults that leave nothing in the books. */
function refusalOf(fault: Fault | undefined): SendOutcome | undefined {
  switch (fault) {
    case "lost-before":
      return noAnswer;
    case "error-before":
      return { kind: "unknown", code: "BROKER_DOWN", why: "the broker answered 500" };
    case "rate-limited":
      return { kind: "not-taken", code: "BROKER_RATE_LIMITED", why: "too many orders", retryAfterMs: 1_000 };
    case "busy":
      return { kind: "not-taken", code: "BROKER_DOWN", why: "the broker is busy and has taken nothing" };
    default:
      return undefined;
  }
}

/** False where it was called off. */
const waited = (ms: number, signal: AbortSignal): Promise<boolean> =>
  sleep(ms, true, { signal, ref: false }).catch(() => false);
