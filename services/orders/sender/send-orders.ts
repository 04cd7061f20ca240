/**
 * Sends orders to the broker. Each is held by one process at a time, and may die with it at any moment:
 *
 * - Before the first byte it is written down that bytes may be out. From there on the order is in doubt, until the broker's
 *   answer, or proof that there will be none, is written down as well.
 * - Whoever claims an order in doubt asks the broker before anything else, and sends only with proof that the broker has
 *   not taken it and never will, or if the broker itself takes an order once.
 * - The request carries the timestamp that was written down. A process that was frozen past its lease sees so by its own
 *   clock and sends nothing; what it may have sent at the last moment comes too late for the broker's window.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import {
  describeError,
  type JobOutcome,
  type Lease,
  release,
  type Worker,
  type WorkerOptions,
  worker,
} from "@todoke/kernel/worker";
import type { Broker, BrokerOrder, SendOutcome } from "../brokers/index.ts";
import { type Backoff, type End, endInDoubt, endOfFailure, endOfRejected, endOfTaken, endsOf } from "./ends.ts";
import { type HeldOrder, haltedMs, letGo, type OrderRow, ordersToSend, takeTurn } from "./store.ts";
import type { Tell } from "./tell.ts";

export interface SenderSettings {
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  /** How long the broker has for an answer. */
  readonly timeoutMs: number;
  /** Orders per second, over all senders; 0 is as many as there are. */
  readonly perSecond: number;
  readonly backoff: Backoff;
}

export interface SendOptions extends Pick<WorkerOptions<OrderRow>, "wakeups" | "topic"> {
  readonly db: Db;
  readonly broker: Broker;
  readonly settings: SenderSettings;
  readonly tell: Tell;
  readonly onError: (error: unknown) => void;
}

export function sendOrders({ db, broker, settings, tell, onError, ...waking }: SendOptions): Worker {
  const { concurrency, leaseMs, pollMs, timeoutMs, perSecond, backoff } = settings;
  const attemptsMax = backoff.waitsMs.length;
  const end = endsOf("sending", { db, tell, leaseMs, onError });
  // Longer than this nobody waits for a turn with an order in hand.
  const turnMaxMs = leaseMs / 4;

  async function work(order: HeldOrder, lease: Lease): Promise<JobOutcome> {
    try {
      const doubt = order.inDoubt ? await askFirst(order, lease.signal) : "none";
      if (typeof doubt === "object") return await end(order, doubt);
      if (order.claim.attempt > attemptsMax) return await end(order, givenUp(order));
      const waitMs = perSecond > 0 ? await takeTurn(db, { adapter: broker.name, perSecond, waitMaxMs: turnMaxMs }) : 0;
      if (waitMs === undefined) return await unsent({ order, doubt }, "many orders wait for their turn", turnMaxMs);
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: lease.signal }).catch(() => {});
      if (lease.signal.aborted) return await unsent({ order, doubt }, "the sender is stopping");
      return await depart({ order, doubt }, lease);
    } catch (error) {
      if (!order.inDoubt) throw error; // Nothing is out: the worker tries it again.
      return end(order, endInDoubt(order, { code: "INTERNAL_ERROR", why: describeError(error) }));
    }
  }

  /** What an answer tells of an order in doubt, or with how much doubt it may be sent. */
  async function askFirst(order: HeldOrder, signal: AbortSignal): Promise<End | Doubt> {
    const found = await ask(order, signal);
    switch (found.kind) {
      case "taken":
        return endOfTaken(found);
      case "rejected":
        return endOfRejected(found);
      case "never":
        return "cleared";
      case "not-yet":
        if (broker.dedupes && order.claim.attempt <= attemptsMax) return "open";
        return endInDoubt(order, { code: "BROKER_TIMEOUT", why: "the broker has not got it yet" });
      case "unknown":
        return endInDoubt(order, { code: "BROKER_TIMEOUT", why: found.why });
    }
  }

  async function ask({ clientOrderId, lastSentAt }: Asked, signal: AbortSignal) {
    const startedAt = performance.now();
    const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const found = await broker.find(clientOrderId, { lastSentAt: lastSentAt ?? broker.clock(), signal: within });
    tell.called("find", found.kind, startedAt);
    return found;
  }

  async function depart({ order, doubt }: InHand, lease: Lease): Promise<JobOutcome> {
    const stampedAt = broker.clock();
    const askedAt = performance.now();
    // From here on the database may say that it is in doubt. As long as nothing is sent, we know better.
    const after = doubt === "none" ? "cleared" : doubt;
    const left = await letGo(db, { order, stampedAt, windowMs: broker.windowMs, leaseMs }).catch(onError);
    if (!left) return unsent({ order, doubt: after }, "the database did not answer before it was sent", pollMs);
    if (left === "lost") return { kind: "settled", won: false };
    if (left === "halted") return unsent({ order, doubt }, "trading is halted", haltedMs);
    if (left === "cancelled") return cancelled({ order, doubt });
    tell.departed(order.ageMs);
    // After a stall the lease may be too short for the request, or gone.
    const leftMs = leaseMs - (performance.now() - askedAt);
    if (leftMs < timeoutMs) return unsent({ order, doubt: after }, "the sender stood still before it was sent");
    return settle({ order, doubt: after }, await send(order, { stampedAt, lease }), lease);
  }

  async function send(order: HeldOrder, { stampedAt, lease }: Sending): Promise<SendOutcome> {
    const startedAt = performance.now();
    const signal = AbortSignal.any([lease.signal, AbortSignal.timeout(timeoutMs)]);
    const outcome = await broker.send(brokerOrder(order), { stampedAt, signal });
    tell.called("send", outcome.kind, startedAt);
    return outcome;
  }

  async function settle({ order, doubt }: InHand, outcome: SendOutcome, lease: Lease): Promise<JobOutcome> {
    if (outcome.kind === "taken") return end(order, endOfTaken(outcome));
    if (outcome.kind === "already") return end(order, await endOfAlready(order, lease.signal));
    if (outcome.kind === "unknown") return end(order, endInDoubt(order, outcome));
    const retryAfterMs = "retryAfterMs" in outcome ? (outcome.retryAfterMs ?? 0) : 0;
    if (retryAfterMs > 0) lease.rest(Math.min(retryAfterMs, restMaxMs));
    // A refusal is of this request. One before it may be under way still.
    if (doubt === "open") return end(order, endInDoubt(order, stillInDoubt));
    if (outcome.kind === "rejected") return end(order, endOfRejected(outcome));
    const { code, why } = outcome;
    return end(order, endOfFailure({ attempt: order.claim.attempt, code, why, atLeastMs: retryAfterMs }, backoff));
  }

  async function endOfAlready({ clientOrderId, asked }: HeldOrder, signal: AbortSignal): Promise<End> {
    const found = await ask({ clientOrderId, lastSentAt: null }, signal);
    if (found.kind === "taken") return endOfTaken(found);
    if (found.kind === "rejected") return endOfRejected(found);
    const why = "the broker says that it has this order already, and does not say what became of it";
    return endInDoubt({ asked }, { code: "BROKER_ALREADY_PROCESSED", why });
  }

  /** It was not sent: it goes back as it came. */
  async function unsent({ order, doubt }: InHand, why: string, inMs = 0): Promise<JobOutcome> {
    if (doubt === "none") return release(why, inMs);
    if (doubt === "cleared") return end(order, { to: "pending", inMs });
    return end(order, endInDoubt(order, { code: "BROKER_TIMEOUT", why }));
  }

  function cancelled({ order, doubt }: InHand): Promise<JobOutcome> {
    const why = "cancelled before it was sent";
    return end(order, doubt === "open" ? endInDoubt(order, stillInDoubt) : { to: "aborted", code: "CANCELLED", why });
  }

  return worker<OrderRow>({
    name: "order sender",
    db,
    claims: ordersToSend,
    queue: broker.name,
    run: (orders, leases) => orders.map((order) => work(order, leases.of(order))),
    // An order in doubt is never given up, so the count of attempts is ours to judge.
    settings: { concurrency, batchMax: concurrency, leaseMs, pollMs, attemptsMax: Number.MAX_SAFE_INTEGER },
    onError,
    ...waking,
  });
}

// A broker that wants to be left alone is, for as long as nobody has to ask why nothing is sent any more.
const restMaxMs = 60_000;

/** none: nothing was ever sent, or it is known what became of it. cleared: proven not to be at the broker. open: it may be. */
type Doubt = "none" | "cleared" | "open";

interface InHand {
  readonly order: HeldOrder;
  readonly doubt: Doubt;
}

interface Sending {
  readonly stampedAt: Date;
  readonly lease: Lease;
}

type Asked = Pick<HeldOrder, "clientOrderId" | "lastSentAt">;

const stillInDoubt = { code: "BROKER_TIMEOUT", why: "a request before the last one may still be taken" } as const;

/** Claimed once too often: nobody who had it before lived to say what became of it, and the broker has not got it. */
const givenUp = ({ claim, lastErrorCode }: HeldOrder): End => ({
  to: "aborted",
  code: lastErrorCode ?? "INTERNAL_ERROR",
  why: `given up after ${claim.attempt - 1} attempts; the broker has not taken it`,
});

const brokerOrder = (order: HeldOrder): BrokerOrder => {
  const { clientOrderId, instrument, side, qty, price, timeInForce, maxSlippageBps } = order;
  return { clientOrderId, instrument, side, qty, price, timeInForce, maxSlippageBps };
};
