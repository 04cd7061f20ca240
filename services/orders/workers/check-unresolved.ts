/**
 * Asks the broker about unresolved orders until each is resolved: soon at first, then every minute. Without a reply an order stays
 * unresolved; an operator can resolve it.
 */
import type { Claims } from "@todoke/kernel/claims";
import { createWorker, type SelfSettled, type Worker } from "@todoke/kernel/worker";
import type { ClaimedOrder, SendableOrder } from "../store/claimed-orders.ts";
import { requeueForSend, unresolvedOrders } from "../store/unresolved-orders.ts";
import { brokerCalls, type SenderOptions, workerOptions } from "./sender-options.ts";
import { exhaustedTarget, rejectedTarget, takenTarget, transitionWriter, unresolvedTarget } from "./transitions.ts";

/** `claims` chooses the orders; by default those that are due. */
export function checkUnresolved(options: SenderOptions, claims: Claims<SendableOrder> = unresolvedOrders): Worker {
  const { db, broker, settings } = options;
  const { backoffMs } = settings;
  const calls = brokerCalls(options);
  const transition = transitionWriter("unknown", options);

  async function check(order: ClaimedOrder, signal: AbortSignal): Promise<SelfSettled> {
    const { clientOrderId, claim, lastErrorCode } = order;
    const lastSentAt = order.lastSentAt ?? broker.clock();
    const code = lastErrorCode ?? "BROKER_TIMEOUT";
    const found = await calls.find(clientOrderId, { lastSentAt, signal });
    switch (found.kind) {
      case "taken":
        return transition(order, takenTarget(found));
      case "rejected":
        return transition(order, rejectedTarget(found));
      case "not-taken":
        return transition(order, hasAttemptsLeft(order) ? { to: "pending" } : exhaustedTarget(claim.attempt, code));
      case "not-taken-yet": {
        if (maySendAgain(order, lastSentAt))
          return { kind: "settled", applied: await requeueForSend(db, claim), delayMs: 1 };
        const reason = "the broker does not have the order yet";
        return transition(order, unresolvedTarget(order, { code, reason }));
      }
      case "unknown":
        return transition(order, unresolvedTarget(order, { code, reason: found.reason }));
    }
  }

  const hasAttemptsLeft = ({ claim }: ClaimedOrder) => claim.attempt < backoffMs.length;

  /** A broker that deduplicates may be sent the order again, after the backoff of a failed attempt. */
  function maySendAgain(order: ClaimedOrder, lastSentAt: Date): boolean {
    const delayMs = backoffMs[order.claim.attempt - 1] ?? 0;
    return broker.dedupes && hasAttemptsLeft(order) && broker.clock().getTime() - lastSentAt.getTime() >= delayMs;
  }

  return createWorker<SendableOrder>({
    ...workerOptions(options, claims),
    name: "order checker",
    run: (orders, leases) => orders.map((order) => check(order, leases.of(order).signal)),
  });
}
