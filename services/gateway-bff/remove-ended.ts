/** Removes what is over from the sessions, every now and then, until stopped. Nothing finds it meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import type { SessionStore } from "./sessions/index.ts";

export interface KeepRemovingOptions {
  readonly everyMs?: number;
  readonly onError: (error: unknown) => void;
}

export function keepRemovingEnded(
  sessions: Pick<SessionStore, "removeEnded">,
  { everyMs = 60_000, onError }: KeepRemovingOptions,
): AsyncDisposable {
  const stopping = new AbortController();
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await sessions.removeEnded().catch((cause) => onError(new Error("removing ended sessions failed", { cause })));
      // Jittered, so that many processes do not come at once.
      const pauseMs = everyMs * (0.5 + Math.random());
      await sleep(pauseMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await loop;
    },
  };
}
