/**
 * The same thing over and over, until stopped: upkeep that nobody waits for. What fails is told and tried again next time.
 * Pauses are 0.5 to 1.5 times `everyMs`, so that many processes do not come at once; a stop waits for what is under way.
 */
import { setTimeout as sleep } from "node:timers/promises";

export interface Period {
  readonly everyMs: number;
  /** For the error: "removing ended sessions". */
  readonly what: string;
  readonly onError?: (error: unknown) => void;
}

export function periodically(
  work: (stopping: AbortSignal) => Promise<unknown>,
  { everyMs, what, onError }: Period,
): AsyncDisposable {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = (async () => {
    while (!signal.aborted) {
      await work(signal).catch((cause) => onError?.(new Error(`${what} failed`, { cause })));
      await sleep(everyMs * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(() => {});
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await loop;
    },
  };
}
