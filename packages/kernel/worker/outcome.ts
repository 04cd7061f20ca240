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
  | { readonly kind: "retry"; readonly inMs: number; readonly why: string }
  | { readonly kind: "dead"; readonly why: string }
  | { readonly kind: "release"; readonly inMs: number; readonly why: string };

export const done: Outcome = Object.freeze({ kind: "done" });
export const retry = (inMs: number, why: string): Outcome => ({ kind: "retry", inMs, why });
export const dead = (why: string): Outcome => ({ kind: "dead", why });
export const release = (why: string, inMs = 0): Outcome => ({ kind: "release", inMs, why });

/**
 * The job settled its own row, in a statement that checks the epoch of the claim; the worker writes nothing. `applied` is
 * false if the lease was lost. `delayMs` is the delay before the next attempt, if there is one.
 */
export interface Settled {
  readonly kind: "settled";
  readonly won: boolean;
  readonly inMs?: number;
}

export type JobOutcome = Outcome | Settled;
