/**
 * Marks entitlements EXPIRED and emits their events, each once, about a second after the end time. Any number of processes
 * may run it. Reads do not depend on it: they compare `expires_at` with the clock themselves (docs/adr/0013).
 */
import type { Db } from "@todoke/kernel/db";
import { runBatches, startLoop } from "@todoke/kernel/worker";
import { expireEntitlements } from "../store/expire-entitlements.ts";

// Small, so that no command waits long for a row of the batch.
const batchMax = 200;

export interface ExpiryOptions {
  readonly intervalMs?: number;
  /** Called after every batch that wrote events; wakes the relay. */
  readonly onCommitted: () => void;
  readonly onError: (error: unknown) => void;
}

export function startExpiry(db: Db, { intervalMs = 1_000, onCommitted, onError }: ExpiryOptions): AsyncDisposable {
  async function expireDue(): Promise<number> {
    const expired = await expireEntitlements(db, batchMax);
    if (expired > 0) onCommitted();
    return expired;
  }
  const task = "expiring entitlements";
  return startLoop((stopping) => runBatches(expireDue, { batchMax, stopping }), { intervalMs, task, onError });
}
