/**
 * Counts in memory what this process lets through, before the store is asked. The arithmetic is that of gcra.ts, so in any
 * window one process grants a key no more than its quota, also while the store is slow or away.
 *
 * It can only be stricter than the store: whatever the store has counted for this process was counted here before. Nothing
 * is given back when the store refuses, because a refund could let a later request pass that does not fit.
 */
import { paceOf, takenOf } from "./gcra.ts";
import type { Item, Taken } from "./index.ts";

export class LocalBuckets {
  /** By key, in microseconds of performance.now(). The least recently used key comes first. */
  readonly #usedUntil = new Map<string, number>();
  readonly #keysMax: number;

  /** Past `keysMax` the least recently used key is forgotten: the store still counts it. */
  constructor({ keysMax = 100_000 } = {}) {
    this.#keysMax = keysMax;
  }

  /** The refusal that these items would meet here; undefined when they fit. Counts nothing. */
  refusal(items: readonly Item[]): Taken | undefined {
    const taken = takenOf(items, this.#ahead(items, nowUs()));
    return taken.granted ? undefined : taken;
  }

  /** Counts the items, all or none. Synchronous: requests that arrive at once are counted one after the other. */
  take(items: readonly Item[]): Taken {
    const now = nowUs();
    const ahead = this.#ahead(items, now);
    const taken = takenOf(items, ahead);
    if (taken.granted)
      for (const [index, { key, units, policy }] of items.entries())
        this.#set(key, now + (ahead[index] ?? 0) + units * paceOf(policy).eachUs);
    return taken;
  }

  #ahead(items: readonly Item[], now: number): readonly number[] {
    return items.map(({ key }) => Math.max(0, (this.#usedUntil.get(key) ?? 0) - now));
  }

  #set(key: string, usedUntil: number): void {
    this.#usedUntil.delete(key);
    this.#usedUntil.set(key, usedUntil);
    if (this.#usedUntil.size <= this.#keysMax) return;
    const [oldest = key] = this.#usedUntil.keys();
    this.#usedUntil.delete(oldest);
  }
}

const nowUs = (): number => performance.now() * 1_000;
