/** Retry delays: exponential with a cap, and jittered so that failed jobs do not return together. */
export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

export const defaultBackoff: Backoff = { baseMs: 1_000, capMs: 60_000 };

/** The delay after failed attempt `attempt`, counted from 1: min(cap, base * 2^attempt) * (0.5 + random). */
export function backoffMs(attempt: number, { baseMs, capMs }: Backoff = defaultBackoff, random = Math.random): number {
  return Math.min(capMs, baseMs * 2 ** attempt) * (0.5 + random());
}
