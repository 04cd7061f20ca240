/** Something that is either so or not so, and that can be waited for: opened before the wait, the wait is over at once. */
export interface Latch {
  open(): void;
  close(): void;
  /** Resolves when it is open, or after `ms`. */
  wait(ms?: number): Promise<void>;
}

export function latch(): Latch {
  let isOpen = false;
  let waiting: (() => void) | undefined;
  return {
    open() {
      isOpen = true;
      waiting?.();
    },
    close() {
      isOpen = false;
    },
    wait(ms) {
      if (isOpen) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(finish, ms);
        function finish(): void {
          clearTimeout(timer);
          waiting = undefined;
          resolve();
        }
        waiting = finish;
      });
    },
  };
}
