/**
 * A background loop: runs a pass, then waits for the next poll or for a wake-up, until it is stopped.
 *
 * A lost wake-up costs latency only, because the poll finds the work too. A pass that throws is reported and repeated, after
 * a backoff that no wake-up cuts short. A stop waits for the running pass.
 */
import { type Backoff, backoffMs } from "./backoff.ts";
import { latch } from "./latch.ts";
import type { Wakeups } from "./wakeups.ts";

export interface LoopOptions {
  /** The wait between two passes; each is 0.5 to 1.5 times this, so that processes do not poll in step. */
  readonly intervalMs: number;
  /** Names the pass in the error: "removing ended sessions" is reported as "removing ended sessions failed". */
  readonly task?: string;
  readonly onError?: (error: unknown) => void;
  /** Delays after failed passes; without it, a failed pass waits for the next poll. */
  readonly backoff?: Backoff;
  /** The pause after a pass of `tookMs`, which no wake-up shortens: it bounds the cost of frequent wake-ups. */
  readonly pauseMs?: (tookMs: number) => number;
  readonly wakeups?: Pick<Wakeups, "on">;
  /** The topic whose signals wake the loop. */
  readonly topic?: string;
}

export interface Loop extends AsyncDisposable {
  /** Ends the current wait, so that the next pass begins now. */
  wake(): void;
}

/** One pass. `nextIn` sets the wait before the next pass in ms, without jitter; 0 is at once, `Infinity` until a wake-up. */
export type Pass = (stopping: AbortSignal, nextIn: (ms: number) => void) => Promise<unknown>;

/** Starts a loop; disposing it stops it. */
export function startLoop(pass: Pass, options: LoopOptions): Loop {
  const { intervalMs, task, onError, backoff, pauseMs, wakeups, topic } = options;
  const [woken, stopped] = [latch(), latch()];
  const stopping = new AbortController();
  let failures = 0;
  let waitMs: number;

  async function run(): Promise<void> {
    waitMs = intervalMs * (0.5 + Math.random());
    try {
      await pass(stopping.signal, (ms) => {
        waitMs = ms;
      });
      failures = 0;
    } catch (cause) {
      failures++;
      if (backoff) waitMs = 0;
      onError?.(task === undefined ? cause : new Error(`${task} failed`, { cause }));
    }
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      woken.close();
      const startedAt = performance.now();
      await run();
      if (stopping.signal.aborted) return;
      const isBackingOff = failures > 0 && backoff;
      const pause = isBackingOff ? backoffMs(failures, backoff) : (pauseMs?.(performance.now() - startedAt) ?? 0);
      if (pause > 0) await stopped.wait(pause);
      if (waitMs > pause) await woken.wait(waitMs - pause);
    }
  }

  const unsubscribe = topic === undefined ? undefined : wakeups?.on(topic, woken.open);
  const running = loop();
  return {
    wake: woken.open,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      unsubscribe?.();
      woken.open();
      stopped.open();
      await running;
    },
  };
}
