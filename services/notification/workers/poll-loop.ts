/**
 * Does something again and again: at once when asked, and at the latest after `pollMs`. Two rounds never overlap, and each
 * is followed by a rest, so that however often it is asked for it takes a bounded part of everybody's time.
 */
export interface PollLoopOptions {
  /** True when the next round is to follow without being asked for. */
  readonly round: () => Promise<boolean>;
  readonly pollMs: number;
  readonly onError: (error: unknown) => void;
}

const restMs = 100;
/** What takes long, for there is much to do or the database is busy, is done the less often. */
const restPerTime = 4;

export interface PollLoop {
  /** There may be something to do. */
  ask(): void;
  /** Resolves when the last round is over. */
  stop(): Promise<void>;
}

export function startPollLoop({ round, pollMs, onError }: PollLoopOptions): PollLoop {
  let asked = false;
  let idle = false;
  let stopping = false;
  let wake = () => {};

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  async function run(): Promise<void> {
    while (!stopping) {
      asked = false;
      const sinceMs = performance.now();
      const hasMore = await round().catch((error) => {
        onError(error);
        return false;
      });
      if (!stopping) await pause(Math.max(restMs, restPerTime * (performance.now() - sinceMs)));
      if (hasMore || asked || stopping) continue;
      idle = true;
      await pause(pollMs);
      idle = false;
    }
  }

  const over = run();
  return {
    ask() {
      asked = true;
      if (idle) wake();
    },
    stop() {
      stopping = true;
      wake();
      return over;
    },
  };
}
