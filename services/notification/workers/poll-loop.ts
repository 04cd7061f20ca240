/**
 * Runs a pass at every wake-up, and at least every `pollMs`. Passes never overlap, and each is followed by a pause, so that
 * frequent wake-ups cost a bounded share of the time.
 */
export interface PollLoopOptions {
  /** Returns true if the next pass should follow without a wake-up. */
  readonly pass: () => Promise<boolean>;
  readonly pollMs: number;
  readonly onError: (error: unknown) => void;
}

const pauseMinMs = 100;
/** A pass that takes long, because of much work or a busy database, is followed by a longer pause. */
const pausePerPass = 4;

export interface PollLoop {
  wake(): void;
  /** Resolves after the last pass. */
  stop(): Promise<void>;
}

export function startPollLoop({ pass, pollMs, onError }: PollLoopOptions): PollLoop {
  let woken = false;
  let idle = false;
  let stopping = false;
  let interrupt = () => {};

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      interrupt = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      const startedAt = performance.now();
      const hasMore = await pass().catch((error) => {
        onError(error);
        return false;
      });
      if (!stopping) await pause(Math.max(pauseMinMs, pausePerPass * (performance.now() - startedAt)));
      if (hasMore || woken || stopping) continue;
      idle = true;
      await pause(pollMs);
      idle = false;
    }
  }

  const stopped = run();
  return {
    wake() {
      woken = true;
      if (idle) interrupt();
    },
    stop() {
      stopping = true;
      interrupt();
      return stopped;
    },
  };
}
