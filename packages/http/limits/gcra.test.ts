import fc from "fast-check";
import { expect, test } from "vitest";
import { burstSize, decide, type LimitPolicy, toPace } from "./gcra.ts";

const policies = fc.record({
  name: fc.constant("read"),
  quota: fc.integer({ min: 1, max: 200 }),
  windowMs: fc.integer({ min: 1, max: 10_000 }),
});

/** What a store does, with a clock that we move: the times (microseconds) at which units were granted. */
function grantedTimes(policy: LimitPolicy, asked: readonly { afterUs: number; units: number }[]): number[] {
  const { eachUs } = toPace(policy);
  const times: number[] = [];
  let now = 0;
  let usedUntil = 0;
  for (const { afterUs, units } of asked) {
    now += afterUs;
    const aheadUs = Math.max(0, usedUntil - now);
    if (!decide([{ key: "k", units, policy }], [aheadUs]).granted) continue;
    usedUntil = now + aheadUs + units * eachUs;
    times.push(...Array<number>(units).fill(now));
  }
  return times;
}

const mostInAnyWindow = (times: readonly number[], windowUs: number) =>
  Math.max(0, ...times.map((start) => times.filter((time) => time >= start && time < start + windowUs).length));

test("at most the quota is granted in any window, at any rhythm of requests", () => {
  // Time is given in hundredths of a window, so that bursts, steady streams and pauses all come up.
  const asked = fc.array(
    fc.record({
      share: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150 })),
      units: fc.integer({ min: 1, max: 5 }),
    }),
    { minLength: 1, maxLength: 300 },
  );
  fc.assert(
    fc.property(policies, asked, (policy, pattern) => {
      const requests = pattern.map(({ share, units }) => ({ afterUs: share * policy.windowMs * 10, units }));
      const times = grantedTimes(policy, requests);
      expect(mostInAnyWindow(times, policy.windowMs * 1_000)).toBeLessThanOrEqual(policy.quota);
    }),
  );
});

test("a steady caller gets a third of the quota at once and two thirds per window", () => {
  const policy = { name: "read", quota: 600, windowMs: 60_000 };
  expect(burstSize(policy)).toBe(201);
  const everyTenMs = Array.from({ length: 30_000 }, () => ({ afterUs: 10_000, units: 1 }));
  const times = grantedTimes(policy, everyTenMs);
  expect(times.filter((time) => time < 60_000_000).length).toBe(600);
  expect(times.filter((time) => time >= 240_000_000 && time < 300_000_000).length).toBe(400);
});

test("the smallest quota grants one unit", () => {
  fc.assert(fc.property(policies, (policy) => burstSize(policy) >= 1));
});

test("a refusal has its wait, exact to the microsecond", () => {
  fc.assert(
    fc.property(policies, fc.double({ min: 0, max: 1, noNaN: true }), (policy, share) => {
      const { eachUs, slackUs } = toPace(policy);
      const items = [{ key: "k", units: 1, policy }];
      const aheadUs = slackUs + 1 + Math.floor(share * eachUs);
      const { granted, results } = decide(items, [aheadUs]);
      const waitUs = Math.round((results[0]?.waitMs ?? 0) * 1_000);
      expect(granted).toBe(false);
      expect(decide(items, [aheadUs - waitUs]).granted).toBe(true);
      expect(decide(items, [aheadUs - waitUs + 1]).granted).toBe(false);
    }),
  );
});

test("remaining is the number of units that fit at once", () => {
  fc.assert(
    fc.property(policies, fc.double({ min: 0, max: 1.5, noNaN: true }), (policy, share) => {
      const { slackUs } = toPace(policy);
      const { granted, results } = decide([{ key: "k", units: 1, policy }], [Math.floor(share * slackUs)]);
      const remaining = results[0]?.remaining ?? -1;
      const aheadUs = Math.round((results[0]?.resetMs ?? 0) * 1_000);
      const fits = (units: number) => decide([{ key: "k", units, policy }], [aheadUs]).granted;
      if (remaining > 0) expect(fits(remaining)).toBe(true);
      expect(fits(remaining + 1)).toBe(false);
      if (!granted) expect(remaining).toBe(0);
    }),
  );
});
