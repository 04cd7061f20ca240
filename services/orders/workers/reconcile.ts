/**
 * Compares our orders of the last day with the broker's, at the start and every minute. A mismatch is counted, logged and stored.
 * Mismatches are never fixed automatically: that would hide their cause. Beside the comparison, the broker is asked about every
 * unresolved order.
 */
import { describeError, startLoop } from "@todoke/kernel/worker";
import { failReconciliation, finishReconciliation, startReconciliation } from "../store/reconciliations.ts";
import { unresolvedOnce } from "../store/unresolved-orders.ts";
import { checkUnresolved } from "./check-unresolved.ts";
import { compareBooks, type Mismatch } from "./compare-books.ts";
import type { SenderOptions } from "./sender-options.ts";

export interface ReconcilerOptions extends SenderOptions {
  readonly intervalMs?: number;
  /** Called with the mismatches of every comparison. */
  readonly onMismatches?: (mismatches: readonly Mismatch[]) => void;
}

// A comparison that takes longer fails.
const compareMaxMs = 10 * 60 * 1_000;
const detailsMax = 100;

/**
 * Two loops: at a slow broker, checking every unresolved order can take longer than new orders are accepted without a comparison
 * (ORDERS_REQUIRE_RECONCILIATION).
 */
export function startReconciler(options: ReconcilerOptions): AsyncDisposable {
  const { intervalMs = 60_000, onError } = options;
  const loops = [
    startLoop((stopping) => reconcile(options, stopping), {
      intervalMs,
      task: "reconciling with the broker",
      onError,
    }),
    startLoop((stopping) => checkAllUnresolved(options, stopping), {
      intervalMs,
      task: "checking unresolved orders",
      onError,
    }),
  ];
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(loops.map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** One comparison. Rejects if it cannot be finished; `reconciliations` has the error too. */
export async function reconcile(options: ReconcilerOptions, stopping?: AbortSignal): Promise<readonly Mismatch[]> {
  const { db, broker, onMismatches, onError } = options;
  const startedAt = await startReconciliation(db, broker.name);
  const signal = AbortSignal.any([AbortSignal.timeout(compareMaxMs), ...(stopping ? [stopping] : [])]);
  try {
    const { seen, mismatches } = await compareBooks({ db, broker, startedAt, signal });
    const details = mismatches.slice(0, detailsMax);
    await finishReconciliation(db, broker.name, { seen, mismatches: mismatches.length, details });
    onMismatches?.(mismatches);
    return mismatches;
  } catch (error) {
    await failReconciliation(db, broker.name, describeError(error)).catch(onError);
    throw error;
  }
}

/** One pass: asks once about every order that is unresolved when the pass starts, whether due or not. */
export async function checkAllUnresolved(options: SenderOptions, stopping?: AbortSignal): Promise<void> {
  const checker = checkUnresolved(options, await unresolvedOnce(options.db));
  try {
    for (let more = true; more && !stopping?.aborted; ) more = (await checker.runOnce()).claimed > 0;
  } finally {
    await checker.stop();
  }
}
