/**
 * The arithmetic of a limit (GCRA, the generic cell rate algorithm), the same for every store.
 *
 * All that is kept of a key is the time until which it is used up. A unit moves that time on by `eachUs`, and fits while
 * the time is no more than `slackUs` ahead of the clock. So between the first and the last of n units in less than a
 * window there are n - 1 steps, and (n - 1) * eachUs < window + slack = quota * eachUs: n is at most the quota, for any
 * window and not only for those that begin on the minute. The price: at once one may have a third of the quota and one
 * more, and the rest as time goes by.
 */
import type { Item, Policy, Taken } from "./index.ts";

/** In microseconds, and whole: what all the stores can count exactly. */
export interface Pace {
  readonly eachUs: number;
  readonly slackUs: number;
}

export function paceOf({ quota, windowMs }: Policy): Pace {
  const slackUs = windowMs * 500;
  return { eachUs: Math.ceil((windowMs * 1_000 + slackUs) / quota), slackUs };
}

/** How many units a key that nobody has used could give at once: what costs more could never be had. */
export const burstOf = (policy: Policy): number => roomAfter(0, paceOf(policy));

function roomAfter(aheadUs: number, { eachUs, slackUs }: Pace): number {
  return aheadUs > slackUs ? 0 : Math.floor((slackUs - aheadUs) / eachUs) + 1;
}

/** What a store found, put in words. `aheadUs` is how far each item's key was ahead of the clock before the request. */
export function takenOf(items: readonly Item[], aheadUs: readonly number[]): Taken {
  const all = items.map((item, place) => ({ item, pace: paceOf(item.policy), ahead: aheadUs[place] ?? 0 }));
  const overUs = ({ item, pace, ahead }: (typeof all)[number]) => ahead + (item.units - 1) * pace.eachUs - pace.slackUs;
  const refusing = all.filter((one) => overUs(one) > 0);
  const granted = refusing.length === 0;
  const verdicts = (granted ? all : refusing).map((one) => {
    const ahead = one.ahead + (granted ? one.item.units * one.pace.eachUs : 0);
    return {
      item: one.item,
      fits: granted,
      remaining: roomAfter(ahead, one.pace),
      resetMs: ahead / 1_000,
      waitMs: granted ? 0 : overUs(one) / 1_000,
    };
  });
  return { granted, verdicts };
}
