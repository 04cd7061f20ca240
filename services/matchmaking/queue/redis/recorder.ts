/**
 * Moves ends from Redis' streams to PostgreSQL: one loop per process, for as long as it runs.
 *
 * Any number of processes share the work. An end is taken by one of them; if that one dies, another takes it after ten
 * seconds. A wake-up cuts the wait short, and the poll is the guarantee. While PostgreSQL is away, what was taken is held
 * and tried again; while Redis is away, there is nothing to take.
 */
import { backoffMs, latch, type Wakeups } from "@todoke/kernel/worker";
import { openRecords, type RecordsOptions } from "./records.ts";

export interface RecorderOptions extends RecordsOptions {
  readonly wakeups?: Pick<Wakeups, "on">;
  /** What is signalled when an end was written to a stream. */
  readonly topic?: string;
  readonly onError: (error: unknown) => void;
  readonly pollMs?: number;
}

export interface Recorder extends AsyncDisposable {
  /** There may be something to record; also in this mode, whether `modes` names it or not. */
  wake(mode?: string): void;
  /** How many ends wait to be recorded, by mode. */
  backlog(): Promise<ReadonlyMap<string, number>>;
}

const failureBackoff = { baseMs: 50, capMs: 5_000 };

export function keepRecording(options: RecorderOptions): Recorder {
  const { wakeups, topic, onError, pollMs = 1_000 } = options;
  const { recordMode, backlog, note, known } = openRecords(options);
  const woken = latch();
  // Ends a rest after a failure; a wake-up does not.
  const stopped = latch();
  let stopping = false;

  /** How many ends were recorded, and whether all went well. What fails in one mode holds up no other. */
  async function round() {
    let moved = 0;
    let failed = false;
    for (const mode of known()) {
      if (stopping) break;
      try {
        moved += await recordMode(mode);
      } catch (cause) {
        failed = true;
        onError(new Error(`recording ends of tickets of ${mode} failed, and is tried again`, { cause }));
      }
    }
    return { moved, failed };
  }

  async function run(): Promise<void> {
    for (let failures = 0; !stopping; ) {
      woken.close();
      const { moved, failed } = await round();
      failures = failed ? failures + 1 : 0;
      if (failed) await stopped.wait(backoffMs(failures, failureBackoff));
      else if (moved === 0 && !stopping) await woken.wait(pollMs * (0.5 + Math.random()));
    }
  }

  const unsubscribe = topic === undefined ? undefined : wakeups?.on(topic, woken.open);
  const loop = run();
  return {
    wake(mode) {
      if (mode !== undefined) note(mode);
      woken.open();
    },
    backlog,
    async [Symbol.asyncDispose]() {
      stopping = true;
      unsubscribe?.();
      woken.open();
      stopped.open();
      await loop;
    },
  };
}
