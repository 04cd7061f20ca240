/**
 * So many calls of one service may be under way, so many more may wait, and the next one is refused at once: a service that
 * hangs holds its own places and nobody else's.
 */
export interface BulkheadOptions {
  readonly underWayMax: number;
  readonly waitingMax: number;
}

export interface Bulkhead {
  /** Whether there was a place within the time. Whoever has entered must leave. */
  enter(waitMs: number): boolean | Promise<boolean>;
  leave(): void;
}

export function bulkhead({ underWayMax, waitingMax }: BulkheadOptions): Bulkhead {
  let underWay = 0;
  /** In the order in which they came. */
  const waiting = new Set<() => void>();

  const wait = (waitMs: number) =>
    new Promise<boolean>((resolve) => {
      const enter = () => {
        clearTimeout(patience);
        resolve(true);
      };
      const patience = setTimeout(() => {
        waiting.delete(enter);
        resolve(false);
      }, waitMs);
      waiting.add(enter);
    });

  return {
    enter(waitMs) {
      if (underWay < underWayMax) {
        underWay++;
        return true;
      }
      return waiting.size < waitingMax && wait(waitMs);
    },
    leave() {
      const [next] = waiting;
      // The place goes from hand to hand: nobody who comes now can slip in before those who wait.
      if (next) {
        waiting.delete(next);
        next();
      } else underWay--;
    },
  };
}
