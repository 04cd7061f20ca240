import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { burstSize, type LimitItem, type LimitPolicy } from "./gcra.ts";
import { LocalBuckets } from "./local-buckets.ts";

const policy = { name: "read", quota: 600, windowMs: 60_000 };
const item = (key: string, units = 1, of: LimitPolicy = policy): LimitItem => ({ key, units, policy: of });

afterEach(() => void vi.restoreAllMocks());

test("concurrent requests for a key are granted its burst", () => {
  const buckets = new LocalBuckets();
  const granted = Array.from({ length: 20_000 }, () => buckets.take([item("a")]).granted).filter(Boolean);
  // What the loop itself takes gives back a unit every 150 ms.
  expect(granted.length).toBeGreaterThanOrEqual(burstSize(policy));
  expect(granted.length).toBeLessThanOrEqual(policy.quota);
});

test("local buckets grant at most the quota in any window", () => {
  const clock = vi.spyOn(performance, "now");
  const pattern = fc.array(fc.record({ afterMs: fc.nat({ max: 2_000 }), units: fc.integer({ min: 1, max: 3 }) }), {
    minLength: 1,
    maxLength: 200,
  });
  fc.assert(
    fc.property(fc.integer({ min: 3, max: 60 }), pattern, (quota, asked) => {
      const small = { name: "read", quota, windowMs: 1_000 };
      const buckets = new LocalBuckets();
      const times: number[] = [];
      let now = 5_000;
      for (const { afterMs, units } of asked) {
        now += afterMs;
        clock.mockReturnValue(now);
        if (buckets.take([item("a", units, small)]).granted) times.push(...Array<number>(units).fill(now));
      }
      for (const start of times)
        expect(times.filter((time) => time >= start && time < start + 1_000).length).toBeLessThanOrEqual(quota);
    }),
  );
});

test("a request is counted by all its keys or none, and a check counts nothing", () => {
  const buckets = new LocalBuckets();
  const tiny = { name: "login", quota: 1, windowMs: 60_000 };
  for (let n = 0; n < 10; n++) expect(buckets.refusal([item("login", 1, tiny)])).toBeUndefined();
  expect(buckets.take([item("login", 1, tiny), item("address")]).granted).toBe(true);
  for (let n = 0; n < 1_000; n++) expect(buckets.take([item("login", 1, tiny), item("address")]).granted).toBe(false);
  expect(buckets.refusal([item("login", 1, tiny)])).toMatchObject({ granted: false, results: [{ remaining: 0 }] });
  // The address was counted once, not a thousand times.
  expect(buckets.take([item("address", burstSize(policy) - 1)]).granted).toBe(true);
});

test("past keysMax the least recently used key is dropped", () => {
  const buckets = new LocalBuckets({ keysMax: 2 });
  const tiny = { name: "login", quota: 1, windowMs: 3_600_000 };
  const take = (key: string) => buckets.take([item(key, 1, tiny)]).granted;
  expect(["a", "b", "a", "c"].map(take)).toEqual([true, true, false, true]);
  // "a" was refused, which does not count as a use; "b" and "c" are kept.
  expect(["b", "c", "a"].map(take)).toEqual([false, false, true]);
});

test("a key that is granted again is not the next one dropped", () => {
  const buckets = new LocalBuckets({ keysMax: 2 });
  const small = { name: "login", quota: 6, windowMs: 3_600_000 };
  const units = burstSize(small) - 1;
  for (const [key, taken] of [
    ["a", units],
    ["b", 1],
    ["a", 1],
    ["c", 1],
  ] as const)
    expect(buckets.take([item(key, taken, small)]).granted).toBe(true);
  expect(buckets.take([item("a", 1, small)]).granted).toBe(false);
});
