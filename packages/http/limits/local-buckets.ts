/**
 * Counts in memory the requests that this process accepts. It uses the arithmetic of gcra.ts, so one process grants a key at
 * most its quota in any window.
 */
import { BoundedMap } from "../bounded-map.ts";
import { decide, type LimitDecision, type LimitItem, toPace } from "./gcra.ts";

export class LocalBuckets {
  /** By key, in microseconds of performance.now(). */
  readonly #usedUntil: BoundedMap<string, number>;

  /** Past `keysMax` the least recently used key is dropped, and starts again as an unused one. */
  constructor({ keysMax = 100_000 } = {}) {
    this.#usedUntil = new BoundedMap(keysMax);
  }

  /** Returns the refusal of these items, or undefined if they fit. Counts nothing. */
  refusal(items: readonly LimitItem[]): LimitDecision | undefined {
    const decision = decide(items, this.#ahead(items, nowUs()));
    return decision.granted ? undefined : decision;
  }

  /** Counts the items, all or none. Synchronous, so that concurrent requests are counted one after the other. */
  take(items: readonly LimitItem[]): LimitDecision {
    const now = nowUs();
    const ahead = this.#ahead(items, now);
    const decision = decide(items, ahead);
    if (decision.granted)
      for (const [index, { key, units, policy }] of items.entries())
        this.#usedUntil.set(key, now + (ahead[index] ?? 0) + units * toPace(policy).eachUs);
    return decision;
  }

  #ahead(items: readonly LimitItem[], now: number): readonly number[] {
    return items.map(({ key }) => Math.max(0, (this.#usedUntil.get(key) ?? 0) - now));
  }
}

const nowUs = (): number => performance.now() * 1_000;
