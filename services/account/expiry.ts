/**
 * Tells that suspensions have run out: each once, about a second after its time, from any number of processes.
 *
 * Nobody waits for it to learn the truth: a read compares with the clock itself. This makes the event, and the version
 * that goes with it (docs/adr/0013).
 */
import type { Db } from "@todoke/kernel/db";
import { periodically } from "@todoke/kernel/worker";
import { endSuspensions } from "./store/end-suspensions.ts";

// So few that no command waits long for a user among them.
const batchMax = 200;

export interface ExpiryOptions {
  readonly everyMs?: number;
  /** Hears of every batch that wrote events: the relay's wake-up. */
  readonly onCommitted: () => void;
  readonly onError: (error: unknown) => void;
}

export function keepEndingSuspensions(db: Db, options: ExpiryOptions): AsyncDisposable {
  const { everyMs = 1_000, onError } = options;
  return periodically((stopping) => endDue(db, options, stopping), {
    everyMs,
    what: "ending the suspensions that have run out",
    onError,
  });
}

async function endDue(db: Db, { onCommitted }: ExpiryOptions, stopping: AbortSignal): Promise<void> {
  for (;;) {
    const ended = await endSuspensions(db, batchMax);
    if (ended > 0) onCommitted();
    if (ended < batchMax || stopping.aborted) return;
  }
}
