/**
 * One wake-up connection for all parts of a process that use the same database. A signal of one service then wakes the workers
 * of another by a function call, and NOTIFY reaches other processes only: each listening connection costs the server a process
 * that wakes up at every NOTIFY.
 */
import { openWakeups, type Wakeups, type WakeupsOptions } from "./wakeups.ts";

interface Shared {
  readonly wakeups: Wakeups;
  readonly errorHandlers: Set<(error: unknown) => void>;
  users: number;
}

const sharedByUrl = new Map<string, Shared>();

/** As `openWakeups`. The connection is closed when its last user has disposed its part. */
export function shareWakeups({ url, onError }: Pick<WakeupsOptions, "url" | "onError">): Wakeups {
  const shared = sharedByUrl.get(url) ?? open(url);
  shared.users++;
  const reportError = (error: unknown) => onError?.(error);
  shared.errorHandlers.add(reportError);
  const subscribed = new Set<() => void>();
  let isDisposed = false;
  return {
    listening: shared.wakeups.listening,
    signal: shared.wakeups.signal,
    on(topic, wake) {
      const unsubscribe = shared.wakeups.on(topic, wake);
      subscribed.add(unsubscribe);
      return () => {
        subscribed.delete(unsubscribe);
        unsubscribe();
      };
    },
    async [Symbol.asyncDispose]() {
      if (isDisposed) return;
      isDisposed = true;
      shared.errorHandlers.delete(reportError);
      for (const unsubscribe of subscribed) unsubscribe();
      if (--shared.users > 0) return;
      sharedByUrl.delete(url);
      await shared.wakeups[Symbol.asyncDispose]();
    },
  };
}

function open(url: string): Shared {
  const errorHandlers = new Set<(error: unknown) => void>();
  const wakeups = openWakeups({ url, onError: (error) => errorHandlers.forEach((report) => void report(error)) });
  const shared: Shared = { wakeups, errorHandlers, users: 0 };
  sharedByUrl.set(url, shared);
  return shared;
}
