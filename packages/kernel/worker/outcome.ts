/**
 * What became of one piece of work. The bus, the relay and every consumer speak only this.
 *
 * "retry" was tried and failed; "dead" will never succeed. "release" was not tried (a stop, a broker that cannot be
 * reached): it goes back as if it had never been taken, and the attempt is not counted. A bus brings it again after
 * `inMs`, and so does a table without order. A row of an ordered table is free at once, and a worker that should not take
 * it right back rests (`Lease.rest`).
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
 * What a job may say besides: it has written the end of its row itself, together with what else follows from it, in a
 * statement of its own that names the claim's epoch. The worker only forgets it. `won` is whether the lease still held;
 * `inMs` is when the row may be tried again.
 */
export interface Settled {
  readonly kind: "settled";
  readonly won: boolean;
  readonly inMs?: number;
}

export type JobOutcome = Outcome | Settled;
