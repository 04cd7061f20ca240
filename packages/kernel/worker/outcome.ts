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
