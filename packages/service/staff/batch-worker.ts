/**
 * Redrives or discards dead letters in batches. A step locks the batch, changes the next rows and moves the batch's position, in one
 * transaction: if the process dies, nothing of the step has happened, and another process continues. The position only
 * rises, and what died since the batch was created is left out, so a row that dies again is not changed again by the same batch (docs/adr/0116).
 */
import { type Db, transaction } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { type Loop, startLoop, type Wakeups } from "@todoke/kernel/worker";
import { type LockedBatch, lockRunningBatch, saveStep, saveStepError } from "./batch-store.ts";
import { toFilter } from "./filter.ts";

export interface BatchWorkerOptions {
  readonly db: Db;
  readonly deadLetters: readonly DeadLetters[];
  /** Wakes the workers of the table. */
  readonly onChanged: (table: string) => void;
  readonly wakeups: Pick<Wakeups, "on">;
  readonly topic: string;
  readonly onError: (error: unknown) => void;
}

// A step holds its rows locked for some milliseconds.
const stepRows = 200;
// At most 2,000 rows a second, so that a redrive does not keep the workers from new work.
const pauseMs = 100;

export const startBatchWorker = (options: BatchWorkerOptions): Loop =>
  startLoop(
    async (_stopping, nextIn) => {
      if (await runStep(options)) nextIn(0);
    },
    {
      intervalMs: 5_000,
      task: "redriving or discarding a batch of dead letters",
      pauseMs: () => pauseMs,
      backoff: { baseMs: 1_000, capMs: 60_000 },
      wakeups: options.wakeups,
      topic: options.topic,
      onError: options.onError,
    },
  );

export type StepOptions = Pick<BatchWorkerOptions, "db" | "deadLetters" | "onChanged"> & { readonly rows?: number };

/** Returns false if no batch runs. */
export async function runStep({ db, deadLetters, onChanged, rows = stepRows }: StepOptions): Promise<boolean> {
  let batch: LockedBatch | undefined;
  try {
    await transaction(db, async (tx) => {
      batch = await lockRunningBatch(tx);
      if (!batch) return;
      const { batch_id, act, filter, position: after, through, created_by: by, reason } = batch;
      // What died since is not what the operator has seen.
      const diedBefore = batch.created_at;
      const table = deadLetters.find(({ name }) => name === batch?.table);
      if (!table) throw new Error(`${batch.table} has no dead letters here`);
      const found = await table.list(tx, { ...toFilter(filter), after, through, diedBefore, limit: rows });
      const ids = found.map(({ id }) => id);
      const applied = ids.length > 0 ? await table[act](tx, ids, { by, reason }) : [];
      await saveStep(tx, batch_id, {
        position: found.at(-1)?.cursor ?? after,
        examined: found.length,
        applied: applied.length,
        isLast: found.length < rows,
      });
    });
  } catch (error) {
    if (batch) await saveStepError(db, batch.batch_id, error);
    throw error;
  }
  if (batch) onChanged(batch.table);
  return batch !== undefined;
}
