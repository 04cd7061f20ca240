/**
 * Tells that entitlements have run out: each once, about a second after its time, from any number of processes.
 *
 * Nobody waits for it to learn the truth: a read compares with the clock itself. This makes the event, and the version
 * that goes with it.
 */
import type { Db } from "@todoke/kernel/db";
import { periodically } from "@todoke/kernel/worker";
import { expireEntitlements } from "./store/expire-entitlements.ts";

// So few that no command waits long for a row among them.
const batchMax = 200;

export interface ExpiryOptions {
  readonly everyMs?: number;
  /** Hears of every batch that wrote events: the relay's wake-up. */
  readonly onCommitted: () => void;
  readonly onError: (error: unknown) => void;
}

export function keepExpiring(db: Db, options: ExpiryOptions): AsyncDisposable {
  const { everyMs = 1_000, onError } = options;
  return periodically((stopping) => expireDue(db, options, stopping), {
    everyMs,
    what: "ending what has run out",
    onError,
  });
}

async function expireDue(db: Db, { onCommitted }: ExpiryOptions, stopping: AbortSignal): Promise<void> {
  for (;;) {
    const expired = await expireEntitlements(db, batchMax);
    if (expired > 0) onCommitted();
    if (expired < batchMax || stopping.aborted) return;
  }
}
