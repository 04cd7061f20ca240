export interface RunBatchesOptions {
  /** The result of a full batch. */
  readonly batchMax: number;
  readonly batchesMax?: number;
  readonly stopping?: AbortSignal;
}

/** Runs `batch`, which returns how many rows it handled, for as long as it is full. Returns how many rows that were. */
export async function runBatches(batch: () => Promise<number>, options: RunBatchesOptions): Promise<number> {
  const { batchMax, batchesMax = Number.POSITIVE_INFINITY, stopping } = options;
  let total = 0;
  for (let batches = 1; ; batches++) {
    const handled = await batch();
    total += handled;
    if (handled < batchMax || batches >= batchesMax || stopping?.aborted) return total;
  }
}
