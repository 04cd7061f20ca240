/**
 * Sends orders to the broker. One process at a time has an order, and it may crash at any step:
 *
 * - The dispatch is recorded before the first byte is sent. From then on the order is unresolved, until the broker's reply or
 *   proof that there will be none is recorded too.
 * - The worker that next claims an unresolved order asks the broker first. It sends only with proof that the broker has not
 *   taken the order and never will, or if the broker deduplicates.
 * - A request carries the recorded timestamp. A process that was frozen past its lease notices by its own clock and sends
 *   nothing; a request that it sent at the last moment arrives after the broker's window.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createWorker, describeError, type JobOutcome, type Lease, release, type Worker } from "@todoke/kernel/worker";
import type { BrokerOrder, SendOutcome } from "../brokers/index.ts";
import { type ClaimedOrder, haltedRetryMs, ordersToSend, type SendableOrder } from "../store/claimed-orders.ts";
import { recordDispatch } from "../store/record-dispatch.ts";
import { reserveSendSlot } from "../store/send-slots.ts";
import { brokerCalls, type SenderOptions, type WakeOptions, workerOptions } from "./sender-options.ts";
import {
  exhaustedTarget,
  failedTarget,
  rejectedTarget,
  type TransitionTarget,
  takenTarget,
  transitionWriter,
  unresolvedTarget,
} from "./transitions.ts";

/** A request sent earlier: none, proven not to arrive any longer, or possibly taken later. */
type PriorSend = "none" | "ruled-out" | "possible";

interface OrderInFlight {
  readonly order: ClaimedOrder;
  readonly priorSend: PriorSend;
}

// A broker's Retry-After is honoured up to this, so that a wrong value does not stop sending for hours.
const pauseMaxMs = 60_000;

export function sendOrders({ wakeups, topic, ...options }: SenderOptions & WakeOptions): Worker {
  const { db, broker, settings, telemetry, onError } = options;
  const { leaseMs, pollMs, timeoutMs, perSecond, backoffMs } = settings;
  const attemptsMax = backoffMs.length;
  const calls = brokerCalls(options);
  const transition = transitionWriter("sending", options);
  // An order does not wait for a slot with most of its lease.
  const slotWaitMaxMs = leaseMs / 4;

  async function work(order: ClaimedOrder, lease: Lease): Promise<JobOutcome> {
    try {
      const priorSend = order.maybeSent ? await checkPriorSend(order, lease.signal) : "none";
      if (typeof priorSend === "object") return await transition(order, priorSend);
      const { attempt } = order.claim;
      // The attempt limit is exceeded: every earlier sender crashed or stalled before it settled the order.
      if (attempt > attemptsMax)
        return await transition(order, exhaustedTarget(attempt - 1, order.lastErrorCode ?? "INTERNAL_ERROR"));
      const waitMs = perSecond > 0 ? await reserveSlot() : 0;
      if (waitMs === undefined) return await unsent({ order, priorSend }, "the send rate is exhausted", slotWaitMaxMs);
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: lease.signal }).catch(() => {});
      return await dispatch({ order, priorSend }, lease);
    } catch (error) {
      if (!order.maybeSent) throw error; // Nothing was sent: the kernel's worker retries it.
      return transition(order, unresolvedTarget(order, { code: "INTERNAL_ERROR", reason: describeError(error) }));
    }
  }

  const reserveSlot = () => reserveSendSlot(db, { adapter: broker.name, perSecond, waitMaxMs: slotWaitMaxMs });

  /** The broker's reply about an order that may have been sent: its result, or whether it may be sent now. */
  async function checkPriorSend(order: ClaimedOrder, signal: AbortSignal): Promise<TransitionTarget | PriorSend> {
    const { clientOrderId, lastSentAt } = order;
    const found = await calls.find(clientOrderId, { lastSentAt: lastSentAt ?? broker.clock(), signal });
    switch (found.kind) {
      case "taken":
        return takenTarget(found);
      case "rejected":
        return rejectedTarget(found);
      case "not-taken":
        return "ruled-out";
      case "not-taken-yet":
        if (broker.dedupes && order.claim.attempt <= attemptsMax) return "possible";
        return unresolvedTarget(order, { code: "BROKER_TIMEOUT", reason: "the broker does not have the order yet" });
      case "unknown":
        return unresolvedTarget(order, { code: "BROKER_TIMEOUT", reason: found.reason });
    }
  }

  async function dispatch({ order, priorSend }: OrderInFlight, lease: Lease): Promise<JobOutcome> {
    const clockError = await calls.measureClock(lease.signal);
    if (lease.signal.aborted) return unsent({ order, priorSend }, "the sender is stopping");
    if (clockError !== undefined)
      return settle({ order, priorSend }, { kind: "not-taken", code: "BROKER_DOWN", reason: clockError }, lease);
    const timestamp = broker.clock();
    const startedAt = performance.now();
    const recorded = await recordDispatch(db, { order, timestamp, windowMs: broker.windowMs, leaseMs }).catch(onError);
    // From here on the database may have the order as sent, though nothing is: unsent() has to undo that.
    const dispatched = { order, priorSend: priorSend === "none" ? "ruled-out" : priorSend } as const;
    if (!recorded) return unsent(dispatched, "the database did not answer before the order was sent", pollMs);
    if (recorded === "lost") return { kind: "settled", applied: false };
    if (recorded === "halted") return unsent({ order, priorSend }, "trading is halted", haltedRetryMs);
    if (recorded === "cancelled") return cancelled({ order, priorSend });
    telemetry.dispatched(order.ageMs);
    // After a stall the rest of the lease may be too short for the request.
    const leaseLeftMs = leaseMs - (performance.now() - startedAt);
    if (leaseLeftMs < timeoutMs) return unsent(dispatched, "the sender stalled before the order was sent");
    const outcome = await calls.send(toBrokerOrder(order), { timestamp, signal: lease.signal });
    return settle(dispatched, outcome, lease);
  }

  async function settle({ order, priorSend }: OrderInFlight, outcome: SendOutcome, lease: Lease): Promise<JobOutcome> {
    if (outcome.kind === "taken") return transition(order, takenTarget(outcome));
    if (outcome.kind === "already-taken") return transition(order, await alreadyTakenTarget(order, lease.signal));
    if (outcome.kind === "unknown") return transition(order, unresolvedTarget(order, outcome));
    const retryAfterMs = "retryAfterMs" in outcome ? (outcome.retryAfterMs ?? 0) : 0;
    if (retryAfterMs > 0) lease.pause(Math.min(retryAfterMs, pauseMaxMs));
    // The broker refused this request. An earlier one may still arrive.
    if (priorSend === "possible") return transition(order, unresolvedTarget(order, priorSendPossible));
    if (outcome.kind === "rejected") return transition(order, rejectedTarget(outcome));
    const { code, reason } = outcome;
    const failure = { attempt: order.claim.attempt, code, reason, delayMinMs: retryAfterMs };
    return transition(order, failedTarget(failure, backoffMs));
  }

  async function alreadyTakenTarget(order: ClaimedOrder, signal: AbortSignal): Promise<TransitionTarget> {
    const found = await calls.find(order.clientOrderId, { lastSentAt: broker.clock(), signal });
    if (found.kind === "taken") return takenTarget(found);
    if (found.kind === "rejected") return rejectedTarget(found);
    const reason = "the broker says that it already has the order, but does not return it";
    return unresolvedTarget(order, { code: "BROKER_ALREADY_PROCESSED", reason });
  }

  /** Nothing was sent by this attempt: the order returns to the state in which it was claimed. */
  async function unsent({ order, priorSend }: OrderInFlight, reason: string, delayMs = 0): Promise<JobOutcome> {
    if (priorSend === "none") return release(reason, delayMs);
    if (priorSend === "ruled-out") return transition(order, { to: "pending", delayMs });
    return transition(order, unresolvedTarget(order, { code: "BROKER_TIMEOUT", reason }));
  }

  function cancelled({ order, priorSend }: OrderInFlight): Promise<JobOutcome> {
    if (priorSend === "possible") return transition(order, unresolvedTarget(order, priorSendPossible));
    return transition(order, { to: "aborted", code: "CANCELLED", reason: "cancelled before it was sent" });
  }

  return createWorker<SendableOrder>({
    ...workerOptions(options, ordersToSend),
    name: "order sender",
    run: (orders, leases) => orders.map((order) => work(order, leases.of(order))),
    ...(wakeups && topic !== undefined && { wakeups, topic }),
  });
}

const priorSendPossible = {
  code: "BROKER_TIMEOUT",
  reason: "the broker may still take an earlier request",
} as const;

function toBrokerOrder(order: ClaimedOrder): BrokerOrder {
  const { clientOrderId, instrument, side, qty, price, timeInForce, maxSlippageBps } = order;
  return { clientOrderId, instrument, side, qty, price, timeInForce, maxSlippageBps };
}
