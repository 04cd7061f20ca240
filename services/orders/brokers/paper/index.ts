/**
 * The paper broker: takes orders into a schema of its own, fills them near the reference price, and can fail in every way that a
 * real broker can. It shares a database server with the service, but no table and no transaction.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Db, migrate } from "@todoke/kernel/db";
import { describeError } from "@todoke/kernel/worker";
import { type Fault, type FaultPlan, faultPlan } from "../faults.ts";
import type { Books, Broker, BrokerResult, SendOutcome } from "../index.ts";
import { notTakenOrNotYet, toFill, toOutcome, toResult } from "../outcomes.ts";
import { matchOrder, selectFills } from "./store/fills.ts";
import {
  cancelOrder,
  findOrder,
  hasSchema,
  insertOrder,
  listOrders,
  type Market,
  selectClock,
} from "./store/orders.ts";

export type { Market } from "./store/orders.ts";

export interface PaperBrokerOptions {
  readonly db: Db;
  /** Chances of faults. */
  readonly faults?: ReadonlyMap<Fault, number>;
  /** Instead of `faults`: the fault of each order. */
  readonly plan?: FaultPlan;
  readonly windowMs?: number;
  /** By instrument. One that is not here is traded at a made-up price. */
  readonly markets?: ReadonlyMap<string, Market>;
  /** The same seed gives the same prices. */
  readonly seed?: number;
  /** The delay of slow and late replies. */
  readonly slowMs?: number;
}

const pageMax = 500;
// Longer than a statement can run after its window check: the pool cancels statements after 12 s.
const marginMs = 12_000;

export const paperMigrations = { name: "paper_broker", dir: new URL("./migrations/", import.meta.url) };

/** Creates its schema if there is none. */
export async function openPaperBroker(options: PaperBrokerOptions): Promise<Broker> {
  const { db, plan = faultPlan(options.faults, Date.now()), windowMs = 30_000 } = options;
  const { slowMs = 15_000, markets, seed = 1 } = options;
  await migrate(db, { schema: "paper_broker", sets: [paperMigrations] });
  const driftMs = (await selectClock(db)).getTime() - Date.now();

  const send: Broker["send"] = async (order, { timestamp, signal }) => {
    const fault = plan.next();
    const refusal = refusalFault(fault);
    if (refusal) return refusal;
    const market = markets?.get(order.instrument);
    const request = { order, timestamp, windowMs, reject: fault === "reject", market, seed };
    if (fault === "late" && !(await sleepUnlessAborted(slowMs, signal))) {
      // The caller has stopped waiting; the order is still taken, if its window allows.
      void insertOrder(db, request).catch(() => {});
      return noReply;
    }
    try {
      const { isNew, order: stored } = await insertOrder(db, request);
      if (!stored)
        return { kind: "not-taken", code: "INTERNAL_ERROR", reason: "the timestamp is not within the broker's window" };
      if (fault === "slow") await sleepUnlessAborted(slowMs, signal);
      if (fault === "lost-after" || signal.aborted) return noReply;
      if (fault === "error-after") return serverError;
      if (!isNew || fault === "already") return { kind: "already-taken", reason: "the broker already has this order" };
      return toOutcome(stored, JSON.stringify(stored));
    } catch (error) {
      return { kind: "unknown", code: "BROKER_DOWN", reason: describeError(error) };
    }
  };

  return {
    name: "paper",
    dedupes: true,
    windowMs: windowMs + marginMs,
    clock: () => new Date(Date.now() + driftMs),
    measureClock: async () => undefined,
    send,

    async find(clientOrderId, { lastSentAt }) {
      try {
        const { at, order } = await findOrder(db, clientOrderId);
        return order
          ? toOutcome(order, JSON.stringify(order))
          : notTakenOrNotYet(at, { lastSentAt, windowMs, marginMs });
      } catch (error) {
        return { kind: "unknown", reason: describeError(error) };
      }
    },

    async cancel(clientOrderId) {
      try {
        if (await cancelOrder(db, clientOrderId)) return { kind: "cancelled", reason: "it was open" };
        const { order } = await findOrder(db, clientOrderId);
        if (!order) return { kind: "not-found", reason: "the broker does not have the order" };
        return order.status === "cancelled"
          ? { kind: "cancelled", reason: "it was cancelled before" }
          : { kind: "too-late", reason: `it is ${order.status}` };
      } catch (error) {
        return { kind: "unknown", reason: describeError(error) };
      }
    },

    /** The market meets a resting order when the broker is asked about it: nothing else waits for its fills. */
    async fills(clientOrderId, { after }) {
      try {
        const { order } = await findOrder(db, clientOrderId);
        if (!order || order.status === "rejected")
          return { kind: "not-found", reason: "the broker does not have the order" };
        const market = markets?.get(order.instrument);
        if (order.status === "open" && market) await matchOrder(db, { clientOrderId, market, seed });
        const { order: latest, fills } = await selectFills(db, {
          clientOrderId,
          after: Number(after ?? 0),
          limit: pageMax,
        });
        const position = Number(after ?? 0) + fills.length;
        return {
          kind: "fills",
          fills: fills.map(toFill),
          position: position === 0 ? null : String(position),
          hasMore: fills.length === pageMax,
          order: toResult(latest, latest.status as BrokerResult["status"]),
        };
      } catch (error) {
        return { kind: "unknown", reason: describeError(error) };
      }
    },

    list: (since, signal) => listResults(db, since, signal),

    async [Symbol.asyncDispose]() {},
  };
}

/** The books alone. Without its schema it has taken no order. */
export const openPaperBooks = (db: Db): Books => ({
  name: "paper",
  async *list(since, signal) {
    if (await hasSchema(db)) yield* listResults(db, since, signal);
  },
  async [Symbol.asyncDispose]() {},
});

async function* listResults(db: Db, since: Date, signal: AbortSignal): AsyncIterable<BrokerResult> {
  for (let after = 0n; ; ) {
    signal.throwIfAborted();
    const page = await listOrders(db, { since, after, limit: pageMax });
    for (const { position, ...order } of page) {
      after = position;
      if (order.status !== "rejected") yield toResult(order, order.status);
    }
    if (page.length < pageMax) return;
  }
}

const noReply: SendOutcome = { kind: "unknown", code: "BROKER_TIMEOUT", reason: "the broker did not reply" };
const serverError: SendOutcome = { kind: "unknown", code: "BROKER_DOWN", reason: "the broker returned 500" };

/** The outcome of faults that store no order. */
function refusalFault(fault: Fault | undefined): SendOutcome | undefined {
  switch (fault) {
    case "lost-before":
      return noReply;
    case "error-before":
      return serverError;
    case "rate-limited":
      return { kind: "not-taken", code: "BROKER_RATE_LIMITED", reason: "too many orders", retryAfterMs: 1_000 };
    case "busy":
      return { kind: "not-taken", code: "BROKER_DOWN", reason: "the broker is busy and has not taken the order" };
    default:
      return undefined;
  }
}

/** Returns false if it was aborted. */
const sleepUnlessAborted = (ms: number, signal: AbortSignal): Promise<boolean> =>
  sleep(ms, true, { signal, ref: false }).catch(() => false);
