import { decide, type LimitItem } from "@todoke/http";
import { expect, test, vi } from "vitest";
import { localLimiter } from "./local-limiter.ts";

const policy = { name: "read", quota: 6, windowMs: 60_000 };
const item = (key: string, units = 1): LimitItem => ({ key, units, policy });

/** A store that refuses everything for an hour, or for the given time, and counts its calls. */
function fullStore() {
  const asked = vi.fn();
  const full = { aheadUs: 3_630_000_000, asked }; // With 30 s of slack.
  const take = async (items: readonly LimitItem[]) => {
    asked();
    return decide(
      items,
      items.map(() => full.aheadUs),
    );
  };
  return Object.assign(full, { take });
}

test("a flood past its limit asks the store once", async () => {
  const store = fullStore();
  const limiter = localLimiter(store);
  for (let n = 0; n < 100; n++) {
    const { granted, results } = await limiter.take([item("a")]);
    expect(granted).toBe(false);
    expect(results[0]?.waitMs).toBeGreaterThan(0);
    expect(results[0]?.waitMs).toBeLessThanOrEqual(3_600_000);
  }
  expect(store.asked).toHaveBeenCalledTimes(1);
  expect(limiter.knownRefusal([item("b"), item("a")])?.granted).toBe(false);
  expect(limiter.knownRefusal([item("b")])).toBeUndefined();
});

test("fewer units than refused, and other keys, still ask the store", async () => {
  const store = fullStore();
  const limiter = localLimiter(store);
  await limiter.take([item("a", 2)]);
  await limiter.take([item("a", 1)]);
  await limiter.take([item("b", 2)]);
  expect(store.asked).toHaveBeenCalledTimes(3);
});

test("the store is asked again after the wait, and not before", async () => {
  const store = fullStore();
  const limiter = localLimiter(store);
  store.aheadUs = 31_000_000;
  const now = vi.spyOn(performance, "now").mockReturnValue(5_000);
  await limiter.take([item("a")]); // 31 s ahead with 30 s of slack: to wait for 1 s.
  now.mockReturnValue(5_999);
  expect((await limiter.take([item("a")])).results[0]?.waitMs).toBe(1);
  expect(store.asked).toHaveBeenCalledTimes(1);
  now.mockReturnValue(6_000);
  store.aheadUs = 0;
  expect((await limiter.take([item("a")])).granted).toBe(true);
  expect(store.asked).toHaveBeenCalledTimes(2);
  now.mockRestore();
});

test("the wait counts from before the store was asked", async () => {
  using now = vi.spyOn(performance, "now").mockReturnValue(5_000);
  const store = fullStore();
  store.aheadUs = 31_000_000; // To wait for 1 s.
  const take = (items: readonly LimitItem[]) => {
    now.mockReturnValue(5_900);
    return store.take(items);
  };
  const limiter = localLimiter({ take });
  await limiter.take([item("a")]);
  expect(limiter.knownRefusal([item("a")])?.granted).toBe(false);
  now.mockReturnValue(6_000);
  expect(limiter.knownRefusal([item("a")])).toBeUndefined();
});

test("a cached refusal is not counted for its address", async () => {
  const isFull = ({ key }: LimitItem) => key === "user";
  const take = async (items: readonly LimitItem[]) =>
    decide(
      items,
      items.map((each) => (isFull(each) ? 3_630_000_000 : 0)),
    );
  const limiter = localLimiter({ take });
  for (let n = 0; n < 100; n++) await limiter.take([item("user"), item("address")]);
  expect(limiter.knownRefusal([item("address")])).toBeUndefined();
});

test("past refusalsMax the oldest refusal is dropped", async () => {
  const store = fullStore();
  const limiter = localLimiter(store, { refusalsMax: 2 });
  for (const key of ["a", "b", "c"]) await limiter.take([item(key)]);
  expect(["a", "b", "c"].map((key) => limiter.knownRefusal([item(key)])?.granted)).toEqual([undefined, false, false]);
});
