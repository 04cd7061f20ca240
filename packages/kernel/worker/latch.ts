/** A flag that can be awaited. It stays open until it is closed, so opening it before the wait is not lost. */
export interface Latch {
  open(): void;
  close(): void;
  /** Resolves when the latch is open, or after `ms`. The timer does not keep the process alive. */
  wait(ms?: number): Promise<void>;
}

export function latch(): Latch {
  let isOpen = false;
  let resume: (() => void) | undefined;
  return {
    open() {
      isOpen = true;
      resume?.();
    },
    close() {
      isOpen = false;
    },
    wait(ms = Number.POSITIVE_INFINITY) {
      if (isOpen) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(finish, ms).unref();
        function finish(): void {
          clearTimeout(timer);
          resume = undefined;
          resolve();
        }
        resume = finish;
      });
    },
  };
}
