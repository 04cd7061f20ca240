/**
 * Records what a claimed order becomes. The statement is fenced by the claim's epoch and retried for as long as the lease may
 * hold. If it never succeeds, the order stays as it is, and the next worker asks the broker before anything else.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { SelfSettled } from "@todoke/kernel/worker";
import type { Rejected, Taken } from "../brokers/index.ts";
import { areEqualDecimals, sumDecimals } from "../order/decimal.ts";
import type { ReasonCode } from "../order/order-status.ts";
import type { ClaimedOrder } from "../store/claimed-orders.ts";
import { toResultView } from "../store/order-fills.ts";
import { type OrderTransition, transitionOrder } from "../store/transition-order.ts";
import type { SenderOptions } from "./sender-options.ts";

export type TransitionTarget = Pick<
  OrderTransition,
  "to" | "code" | "reason" | "delayMs" | "brokerOrderId" | "result" | "execution" | "fills" | "evidence"
>;

/** Writes transitions of orders that are claimed in this state. */
export function transitionWriter(
  status: "sending" | "unknown",
  { db, telemetry, settings, onError }: Pick<SenderOptions, "db" | "telemetry" | "settings" | "onError">,
) {
  return async function transition(order: ClaimedOrder, target: TransitionTarget): Promise<SelfSettled> {
    const { key: id, epoch, attempt: attempts } = order.claim;
    const applied = await retry(() => transitionOrder(db, { ...target, id, epoch, from: [status] }));
    if (applied) telemetry.transitioned({ idempotencyKey: order.idempotencyKey, attempts }, target);
    const { delayMs } = target;
    return { kind: "settled", applied, ...(delayMs !== undefined && { delayMs }) };
  };

  async function retry(write: () => Promise<boolean>): Promise<boolean> {
    const endsAt = performance.now() + settings.leaseMs;
    for (;;) {
      try {
        return await write();
      } catch (error) {
        onError(new Error("recording a transition of an order failed", { cause: error }));
        if (performance.now() > endsAt) return false;
        await sleep(100 + Math.random() * 200);
      }
    }
  }
}

/** An order that has ended at the broker, and all of whose fills are in the reply, need not be followed. */
export function takenTarget({ result, evidence }: Taken): TransitionTarget {
  const { status, filledQty, fills = [] } = result;
  const isComplete = status !== "open" && areEqualDecimals(filledQty, sumDecimals(fills.map((fill) => fill.qty)));
  return {
    to: "succeeded",
    brokerOrderId: result.brokerOrderId,
    result: toResultView(result),
    ...(isComplete && { execution: status, fills }),
    evidence,
  };
}

export const rejectedTarget = ({ reason, evidence }: Rejected): TransitionTarget => ({
  to: "aborted",
  code: "BROKER_REJECTED",
  reason,
  evidence,
});

interface Failure {
  readonly attempt: number;
  readonly code: ReasonCode;
  readonly reason: string;
  readonly delayMinMs: number;
}

/** A failed attempt of an order that the broker does not have: another after the backoff, unless it was the last. */
export function failedTarget(
  { attempt, code, reason, delayMinMs }: Failure,
  backoffMs: readonly number[],
): TransitionTarget {
  const delayMs = backoffMs[attempt - 1];
  if (delayMs === undefined || attempt >= backoffMs.length) return { to: "aborted", code, reason };
  return { to: "failed", code, reason, delayMs: Math.max(delayMs, delayMinMs) };
}

/** No attempts are left, and the broker does not have the order. */
export const exhaustedTarget = (attempts: number, code: ReasonCode): TransitionTarget => ({
  to: "aborted",
  code,
  reason: `aborted after ${attempts} attempts; the broker does not have the order`,
});

// Most replies are only late, so the first checks are soon. The last delay repeats for as long as it takes.
const checkDelaysMs = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

export function unresolvedTarget(
  { checks }: Pick<ClaimedOrder, "checks">,
  { code, reason }: { readonly code: ReasonCode; readonly reason: string },
): TransitionTarget {
  return { to: "unknown", code, reason, delayMs: checkDelaysMs[Math.min(checks, checkDelaysMs.length - 1)] as number };
}
