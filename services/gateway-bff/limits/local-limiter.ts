/**
 * Rejects in memory, until it could be granted again, what this process has granted often enough and what the store has
 * refused. A flood past its limit costs the store nothing and cannot make it too slow to count.
 *
 * The counts in memory may be stricter than the store, never laxer: every request of this process is counted here before the
 * store counts it. A refusal by the store refunds nothing, because a refund could let a later request pass that does not fit.
 *
 * A cached refusal refuses nothing that the store would grant: a key only moves further ahead, so a refused request does
 * not fit before its wait is over, and the wait is measured from before the store was asked.
 */
import { BoundedMap, type LimitDecision, type LimitItem, type LimitResult, LocalBuckets } from "@todoke/http";
import type { Limiter } from "./index.ts";

export interface LocalLimiter extends Limiter {
  /** The refusal of these items, as far as it is known without asking the store. */
  knownRefusal(items: readonly LimitItem[]): LimitDecision | undefined;
}

interface CachedRefusal {
  readonly result: LimitResult;
  /** By performance.now(). */
  readonly untilMs: number;
}

export function localLimiter(limiter: Limiter, { refusalsMax = 10_000 } = {}): LocalLimiter {
  const refusals = new BoundedMap<string, CachedRefusal>(refusalsMax);
  const local = new LocalBuckets();

  function cachedResult(item: LimitItem, nowMs: number): LimitResult | undefined {
    const refusal = refusals.get(item.key);
    if (!refusal) return undefined;
    const { result, untilMs } = refusal;
    const waitMs = untilMs - nowMs;
    if (waitMs <= 0) refusals.delete(item.key);
    // Fewer units might fit.
    if (waitMs <= 0 || item.units < result.item.units) return undefined;
    return { ...result, item, waitMs, resetMs: result.resetMs - result.waitMs + waitMs };
  }

  function cachedRefusal(items: readonly LimitItem[]): LimitDecision | undefined {
    if (refusals.size === 0) return undefined;
    const nowMs = performance.now();
    const results = items.map((item) => cachedResult(item, nowMs)).filter((result) => result !== undefined);
    return results.length > 0 ? { granted: false, results } : undefined;
  }

  return {
    knownRefusal: (items) => cachedRefusal(items) ?? local.refusal(items),
    async take(items) {
      const refusal = cachedRefusal(items);
      if (refusal) return refusal;
      // Before anything is awaited: concurrent requests are counted at once.
      const here = local.take(items);
      if (!here.granted) return here;
      const askedAtMs = performance.now();
      const decision = await limiter.take(items);
      if (!decision.granted)
        for (const result of decision.results)
          refusals.set(result.item.key, { result, untilMs: askedAtMs + result.waitMs });
      return decision;
    },
  };
}
