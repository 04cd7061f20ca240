/** How long to wait before the next try: exponential, with a cap, and jittered so that failures do not come back together. */
export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

export const defaultBackoff: Backoff = { baseMs: 1_000, capMs: 60_000 };

/** `attempt` is 1 after the first failure. Seed 000: min(cap, base * 2^attempt) * (0.5 + random). */
export function backoffMs(attempt: number, { baseMs, capMs }: Backoff = defaultBackoff, random = Math.random): number {
  return Math.min(capMs, baseMs * 2 ** attempt) * (0.5 + random());
}
