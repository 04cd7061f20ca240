/**
 * Counts in memory what this process lets through, before the store is asked. It uses the arithmetic of gcra.ts, so one
 * process grants a key at most its quota in any window, also while the store is slow or unavailable.
 *
 * It may be stricter than the store, never laxer: every request of this process is counted here before the store counts it.
 * A refusal by the store refunds nothing, because a refund could let a later request pass that does not fit.
 */
import { BoundedMap } from "@todoke/http";
import { decide, toPace } from "./gcra.ts";
import type { Item, LimitDecision } from "./index.ts";

export class LocalBuckets {
  /** By key, in microseconds of performance.now(). */
  readonly #usedUntil: BoundedMap<string, number>;

  /** Past `keysMax` the least recently used key is dropped; the store still counts it. */
  constructor({ keysMax = 100_000 } = {}) {
    this.#usedUntil = new BoundedMap(keysMax);
  }

  /** Returns the refusal of these items, or undefined if they fit. Counts nothing. */
  refusal(items: readonly Item[]): LimitDecision | undefined {
    const decision = decide(items, this.#ahead(items, nowUs()));
    return decision.granted ? undefined : decision;
  }

  /** Counts the items, all or none. Synchronous, so that concurrent requests are counted one after the other. */
  take(items: readonly Item[]): LimitDecision {
    const now = nowUs();
    const ahead = this.#ahead(items, now);
    const decision = decide(items, ahead);
    if (decision.granted)
      for (const [index, { key, units, policy }] of items.entries())
        this.#usedUntil.set(key, now + (ahead[index] ?? 0) + units * toPace(policy).eachUs);
    return decision;
  }

  #ahead(items: readonly Item[], now: number): readonly number[] {
    return items.map(({ key }) => Math.max(0, (this.#usedUntil.get(key) ?? 0) - now));
  }
}

const nowUs = (): number => performance.now() * 1_000;
