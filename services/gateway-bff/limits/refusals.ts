/**
 * Refuses in memory what this process has granted often enough, and what the store has refused, until it could be granted
 * again: a flood past its limit costs the store nothing, and cannot make the store too slow to count it.
 *
 * A remembered refusal refuses nothing that the store would grant. A key only ever gets further ahead, so what did not fit
 * does not fit before its wait is over; and the wait is counted from before the store was asked.
 */
import type { Item, Limiter, Taken, Verdict } from "./index.ts";
import { LocalBuckets } from "./local-buckets.ts";

export interface RememberingLimiter extends Limiter {
  /** The refusal that these items would meet, as far as it is known without asking the store. */
  refused(items: readonly Item[]): Taken | undefined;
}

interface Refusal {
  readonly verdict: Verdict;
  /** By performance.now(). */
  readonly untilMs: number;
}

export function rememberRefusals(limiter: Limiter, { refusalsMax = 10_000 } = {}): RememberingLimiter {
  const refusals = new Map<string, Refusal>();
  const local = new LocalBuckets();

  function remember(verdict: Verdict, askedAtMs: number): void {
    const { key } = verdict.item;
    refusals.delete(key);
    refusals.set(key, { verdict, untilMs: askedAtMs + verdict.waitMs });
    if (refusals.size <= refusalsMax) return;
    const [oldest = key] = refusals.keys();
    refusals.delete(oldest);
  }

  function refusalOf(item: Item, nowMs: number): Verdict | undefined {
    const refusal = refusals.get(item.key);
    if (!refusal) return undefined;
    const { verdict, untilMs } = refusal;
    const waitMs = untilMs - nowMs;
    if (waitMs <= 0) refusals.delete(item.key);
    // Fewer units might fit.
    if (waitMs <= 0 || item.units < verdict.item.units) return undefined;
    return { ...verdict, item, waitMs, resetMs: verdict.resetMs - verdict.waitMs + waitMs };
  }

  function remembered(items: readonly Item[]): Taken | undefined {
    if (refusals.size === 0) return undefined;
    const nowMs = performance.now();
    const verdicts = items.map((item) => refusalOf(item, nowMs)).filter((verdict) => verdict !== undefined);
    return verdicts.length > 0 ? { granted: false, verdicts } : undefined;
  }

  return {
    refused: (items) => remembered(items) ?? local.refusal(items),
    async take(items) {
      const known = remembered(items);
      if (known) return known;
      // Before anything is waited for: what comes at once is counted at once.
      const here = local.take(items);
      if (!here.granted) return here;
      const askedAtMs = performance.now();
      const taken = await limiter.take(items);
      if (!taken.granted) for (const verdict of taken.verdicts) remember(verdict, askedAtMs);
      return taken;
    },
  };
}
