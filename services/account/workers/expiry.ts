/**
 * Ends suspensions and emits their events, each once, about a second after the end time. Any number of processes may run
 * it. Reads do not depend on it: they compare `suspended_until` with the clock themselves (docs/adr/0013).
 */
import type { Db } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import { runBatches, startLoop } from "@todoke/kernel/worker";
import { endSuspensions } from "../commands/end-suspensions.ts";

// Small, so that no command waits long for a user of the batch.
const batchMax = 200;

export interface ExpiryOptions {
  readonly db: Db;
  readonly outbox: Outbox;
  readonly intervalMs?: number;
  readonly onError: (error: unknown) => void;
}

export function startExpiry({ db, outbox, intervalMs = 1_000, onError }: ExpiryOptions): AsyncDisposable {
  const endDue = () => endSuspensions(db, outbox, batchMax);
  const task = "ending suspensions";
  return startLoop((stopping) => runBatches(endDue, { batchMax, stopping }), { intervalMs, task, onError });
}
