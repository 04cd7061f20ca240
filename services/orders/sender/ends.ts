/**
 * Writes down what became of an order that a worker holds: one statement, which names the claim's epoch, for the order, its
 * ledger, its history and its event. Tried again while the lease may be ours; a process that cannot write leaves the order
 * in doubt, and whoever claims it next asks the broker first.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import type { Settled } from "@todoke/kernel/worker";
import type { BrokerResult, Rejected, Taken } from "../brokers/index.ts";
import type { ReasonCode } from "../order.ts";
import { type Move, moveOrder } from "../store/move-order.ts";
import type { HeldOrder } from "./store.ts";
import type { Tell } from "./tell.ts";

export type End = Pick<Move, "to" | "code" | "why" | "inMs" | "brokerOrderId" | "result" | "evidence">;

export interface EndOptions {
  readonly db: Db;
  readonly tell: Tell;
  readonly leaseMs: number;
  readonly onError: (error: unknown) => void;
}

/** Ends of an order that is held in this state. */
export function endsOf(status: "sending" | "unknown", { db, tell, leaseMs, onError }: EndOptions) {
  return async function end(order: HeldOrder, wanted: End): Promise<Settled> {
    const { key: id, epoch, attempt: attempts } = order.claim;
    const from = [status];
    const won = await write(() => moveOrder(db, { ...wanted, id, epoch, from }));
    if (won) tell.ended({ idempotencyKey: order.idempotencyKey, attempts }, wanted);
    return { kind: "settled", won, ...(wanted.inMs !== undefined && { inMs: wanted.inMs }) };
  };

  async function write(move: () => Promise<boolean>): Promise<boolean> {
    const triesEndAt = performance.now() + leaseMs;
    for (;;) {
      try {
        return await move();
      } catch (error) {
        onError(new Error("writing down what became of an order failed", { cause: error }));
        if (performance.now() > triesEndAt) return false;
        await sleep(100 + Math.random() * 200);
      }
    }
  }
}

export function endOfTaken({ result, evidence }: Taken): End {
  return { to: "succeeded", brokerOrderId: result.brokerOrderId, result: resultView(result), evidence };
}

export const endOfRejected = ({ why, evidence }: Rejected): End => ({
  to: "aborted",
  code: "BROKER_REJECTED",
  why,
  evidence,
});

/** As the caller gets to see it. */
function resultView({ status, filledQty, price, takenAt }: BrokerResult): Readonly<Record<string, unknown>> {
  return { status, filled_qty: filledQty, price, taken_at: takenAt };
}

export interface Backoff {
  /** After the first failure, the second, and so on: an order has as many attempts as this has waits. */
  readonly waitsMs: readonly number[];
}

/** What is known to have failed: tried again after its wait, or given up with the last one. */
export function endOfFailure(
  { attempt, code, why, atLeastMs = 0 }: Failure,
  { waitsMs }: Backoff,
): End & { readonly inMs?: number } {
  const waitMs = waitsMs[attempt - 1];
  if (waitMs === undefined || attempt >= waitsMs.length) return { to: "aborted", code, why };
  return { to: "failed", code, why, inMs: Math.max(waitMs, atLeastMs) };
}

interface Failure {
  readonly attempt: number;
  readonly code: ReasonCode;
  readonly why: string;
  readonly atLeastMs?: number;
}

// Soon at first, for most answers are only late; then seldom, for as long as it takes.
const askAgainMs = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

export function endInDoubt(order: Pick<HeldOrder, "asked">, { code, why }: { code: ReasonCode; why: string }): End {
  return { to: "unknown", code, why, inMs: askAgainMs[Math.min(order.asked, askAgainMs.length - 1)] as number };
}
