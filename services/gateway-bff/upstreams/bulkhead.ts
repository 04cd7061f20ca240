/**
 * Bounds the calls to one service: `concurrency` in flight, `queueMax` waiting; the next one fails at once. A service that
 * hangs blocks its own slots and no other's.
 */
export interface BulkheadOptions {
  readonly concurrency: number;
  readonly queueMax: number;
}

export interface Bulkhead {
  /** Resolves to false if no slot was free in time. A caller that entered must leave. */
  enter(waitMs: number): boolean | Promise<boolean>;
  leave(): void;
}

export function bulkhead({ concurrency, queueMax }: BulkheadOptions): Bulkhead {
  let inFlight = 0;
  /** In order of arrival. */
  const queue = new Set<() => void>();

  const wait = (waitMs: number) =>
    new Promise<boolean>((resolve) => {
      const enter = () => {
        clearTimeout(timeout);
        resolve(true);
      };
      const timeout = setTimeout(() => {
        queue.delete(enter);
        resolve(false);
      }, waitMs);
      queue.add(enter);
    });

  return {
    enter(waitMs) {
      if (inFlight < concurrency) {
        inFlight++;
        return true;
      }
      return queue.size < queueMax && wait(waitMs);
    },
    leave() {
      const [next] = queue;
      // Hand the slot over, so that no new caller overtakes the queue.
      if (next) {
        queue.delete(next);
        next();
      } else inFlight--;
    },
  };
}
