/**
 * Moves ends from the Redis streams to PostgreSQL: one loop per process.
 *
 * Any number of processes share the work. A process claims an end; if it crashes, another one claims it after ten seconds.
 * A wake-up shortens the wait; the poll is the guarantee. While PostgreSQL is unavailable, claimed ends are kept and retried.
 */
import { type LoopOptions, startLoop } from "@todoke/kernel/worker";
import { type EndBatchesOptions, openEndBatches } from "../queue/redis/end-batches.ts";

/** The topic is that of new ends. */
export interface RecorderOptions extends EndBatchesOptions, Pick<LoopOptions, "wakeups" | "topic"> {
  readonly onError: (error: unknown) => void;
  readonly pollMs?: number;
}

export interface Recorder extends AsyncDisposable {
  /** Polls now, and from now on this mode too, even if `modes` does not list it. */
  wake(mode?: string): void;
  /** How many ends are not recorded yet, by mode. */
  backlog(): Promise<ReadonlyMap<string, number>>;
}

const backoff = { baseMs: 50, capMs: 5_000 };

export function startRecorder(options: RecorderOptions): Recorder {
  const { onError, pollMs: intervalMs = 1_000 } = options;
  const { recordMode, backlog, addMode, allModes } = openEndBatches(options);

  /** An error in one mode does not delay the others. */
  async function record(stopping: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    let failure: Error | undefined;
    for (const mode of allModes()) {
      if (stopping.aborted) break;
      try {
        if ((await recordMode(mode)) > 0) nextIn(0);
      } catch (cause) {
        if (failure) onError(failure);
        failure = new Error(`recording ended tickets of ${mode} failed; it will be retried`, { cause });
      }
    }
    if (failure) throw failure; // The loop reports it and backs off.
  }

  const loop = startLoop(record, { ...options, intervalMs, backoff });
  return {
    wake(mode) {
      if (mode !== undefined) addMode(mode);
      loop.wake();
    },
    backlog,
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}
