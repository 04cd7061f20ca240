/**
 * The arithmetic of a limit (GCRA, the generic cell rate algorithm), the same for every store.
 *
 * A key stores only the time until which it is used up. A unit moves that time on by `eachUs`, and fits while the time is
 * at most `slackUs` ahead of the clock. Between the first and the last of n units within a window there are n - 1 steps,
 * and (n - 1) * eachUs < window + slack = quota * eachUs. So n is at most the quota in any window, not only in those that
 * begin on the minute. The price: a third of the quota and one more are available at once, the rest as time goes by.
 */

export interface LimitPolicy {
  /** Its name in the RateLimit headers. */
  readonly name: string;
  readonly quota: number;
  readonly windowMs: number;
}

/** Units taken from one key. A key belongs to one policy and occurs once in a request. */
export interface LimitItem {
  readonly key: string;
  readonly units: number;
  readonly policy: LimitPolicy;
}

/** The state of one item after its request was granted or refused. */
export interface LimitResult {
  readonly item: LimitItem;
  readonly fits: boolean;
  /** Units that are available at once. */
  readonly remaining: number;
  /** Time until the key is unused. */
  readonly resetMs: number;
  /** Time until a refused item would fit; 0 if it fits. */
  readonly waitMs: number;
}

export interface LimitDecision {
  readonly granted: boolean;
  /** All items if granted, else those that did not fit. */
  readonly results: readonly LimitResult[];
}

/** Whole microseconds, which all stores count exactly. */
export interface Pace {
  readonly eachUs: number;
  readonly slackUs: number;
}

export function toPace({ quota, windowMs }: LimitPolicy): Pace {
  const slackUs = windowMs * 500;
  return { eachUs: Math.ceil((windowMs * 1_000 + slackUs) / quota), slackUs };
}

/** Units that an unused key grants at once. A request for more could never be granted. */
export const burstSize = (policy: LimitPolicy): number => unitsLeft(0, toPace(policy));

function unitsLeft(aheadUs: number, { eachUs, slackUs }: Pace): number {
  return aheadUs > slackUs ? 0 : Math.floor((slackUs - aheadUs) / eachUs) + 1;
}

/** `aheadUs` is how far each item's key was ahead of the clock before the request. */
export function decide(items: readonly LimitItem[], aheadUs: readonly number[]): LimitDecision {
  const all = items.map((item, index) => ({ item, pace: toPace(item.policy), ahead: aheadUs[index] ?? 0 }));
  const excessUs = ({ item, pace, ahead }: (typeof all)[number]) =>
    ahead + (item.units - 1) * pace.eachUs - pace.slackUs;
  const refusing = all.filter((one) => excessUs(one) > 0);
  const granted = refusing.length === 0;
  const results = (granted ? all : refusing).map((one) => {
    const ahead = one.ahead + (granted ? one.item.units * one.pace.eachUs : 0);
    return {
      item: one.item,
      fits: granted,
      remaining: unitsLeft(ahead, one.pace),
      resetMs: ahead / 1_000,
      waitMs: granted ? 0 : excessUs(one) / 1_000,
    };
  });
  return { granted, results };
}
