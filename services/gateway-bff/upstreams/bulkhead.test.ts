import { expect, test } from "vitest";
import { bulkhead } from "./bulkhead.ts";

test("calls beyond concurrency wait in order, and calls beyond the queue fail at once", async () => {
  const places = bulkhead({ concurrency: 2, queueMax: 2 });
  expect([places.enter(1_000), places.enter(1_000)]).toEqual([true, true]);
  const order: string[] = [];
  const waiting = ["third", "fourth"].map(async (name) => {
    expect(await places.enter(10_000)).toBe(true);
    order.push(name);
  });
  expect(places.enter(10_000)).toBe(false);
  places.leave();
  await waiting[0];
  places.leave();
  await waiting[1];
  expect(order).toEqual(["third", "fourth"]);
  // A place that was handed on is not free.
  expect(places.enter(0)).not.toBe(true);
});

test("a caller that timed out leaves the queue", async () => {
  const places = bulkhead({ concurrency: 1, queueMax: 1 });
  places.enter(0);
  expect(await places.enter(1)).toBe(false);
  places.leave();
  expect(places.enter(0)).toBe(true);
});
