/**
 * The outcome of one job or delivery; bus, relay and consumers share it.
 *
 * "done": it succeeded. "retry": the attempt failed; run it again after `delayMs`. "dead": it can never succeed. "release": it
 * was not attempted (a stop, an unavailable message broker), so the attempt is not counted. A bus redelivers a released
 * event after `delayMs`, and an unordered table delays a released row. A row of an ordered table is ready at once; a worker
 * that must not claim it again at once pauses.
 */
export type Outcome =
  | { readonly kind: "done" }
  | { readonly kind: "retry"; readonly delayMs: number; readonly reason: string }
  | { readonly kind: "dead"; readonly reason: string }
  | { readonly kind: "release"; readonly delayMs: number; readonly reason: string };

export const done: Outcome = Object.freeze({ kind: "done" });
export const retry = (delayMs: number, reason: string): Outcome => ({ kind: "retry", delayMs, reason });
export const dead = (reason: string): Outcome => ({ kind: "dead", reason });
export const release = (reason: string, delayMs = 0): Outcome => ({ kind: "release", delayMs, reason });

/**
 * The job settled its own row, in a statement that checks the epoch of the claim; the worker writes nothing. `applied` is
 * false if the lease was lost. `delayMs` is the delay before the next attempt, if there is one.
 */
export interface SelfSettled {
  readonly kind: "settled";
  readonly applied: boolean;
  readonly delayMs?: number;
}

export type JobOutcome = Outcome | SelfSettled;
