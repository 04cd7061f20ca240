/**
 * Moves ends from the Redis streams to PostgreSQL: one loop per process.
 *
 * Any number of processes share the work. A process claims an end; if it crashes, another one claims it after ten seconds.
 * A wake-up shortens the wait; the poll is the guarantee. While PostgreSQL is unavailable, claimed ends are kept and retried.
 */
import { backoffMs, latch, type Wakeups } from "@todoke/kernel/worker";
import { type EndBatchesOptions, openEndBatches } from "../queue/redis/end-batches.ts";

export interface RecorderOptions extends EndBatchesOptions {
  readonly wakeups?: Pick<Wakeups, "on">;
  /** The wake-up topic for new ends. */
  readonly topic?: string;
  readonly onError: (error: unknown) => void;
  readonly pollMs?: number;
}

export interface Recorder extends AsyncDisposable {
  /** Polls now, and from now on this mode too, even if `modes` does not list it. */
  wake(mode?: string): void;
  /** How many ends are not recorded yet, by mode. */
  backlog(): Promise<ReadonlyMap<string, number>>;
}

const retryBackoff = { baseMs: 50, capMs: 5_000 };

export function startRecorder(options: RecorderOptions): Recorder {
  const { wakeups, topic, onError, pollMs = 1_000 } = options;
  const { recordMode, backlog, addMode, allModes } = openEndBatches(options);
  const woken = latch();
  // Ends the backoff after an error; a wake-up does not.
  const stopped = latch();
  let stopping = false;

  /** An error in one mode does not delay the others. */
  async function runOnce() {
    let recorded = 0;
    let failed = false;
    for (const mode of allModes()) {
      if (stopping) break;
      try {
        recorded += await recordMode(mode);
      } catch (cause) {
        failed = true;
        onError(new Error(`recording ended tickets of ${mode} failed; it will be retried`, { cause }));
      }
    }
    return { recorded, failed };
  }

  async function run(): Promise<void> {
    for (let failures = 0; !stopping; ) {
      woken.close();
      const { recorded, failed } = await runOnce();
      failures = failed ? failures + 1 : 0;
      if (failed) await stopped.wait(backoffMs(failures, retryBackoff));
      else if (recorded === 0 && !stopping) await woken.wait(pollMs * (0.5 + Math.random()));
    }
  }

  const unsubscribe = topic === undefined ? undefined : wakeups?.on(topic, woken.open);
  const running = run();
  return {
    wake(mode) {
      if (mode !== undefined) addMode(mode);
      woken.open();
    },
    backlog,
    async [Symbol.asyncDispose]() {
      stopping = true;
      unsubscribe?.();
      woken.open();
      stopped.open();
      await running;
    },
  };
}
