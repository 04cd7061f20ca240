import { expect, test } from "vitest";
import { Restarts } from "./restarts.ts";

const minuteMs = 60_000;

test("a process that dies again and again is started later each time, up to 30 s", () => {
  const restarts = new Restarts();
  const delays = Array.from({ length: 7 }, () => restarts.onDeath(1));
  expect(delays).toEqual([100, 400, 1_600, 6_400, 25_600, 30_000, 30_000].map((delayMs) => ({ delayMs })));
});

test("after a minute without a fault the delay is the first again", () => {
  const restarts = new Restarts();
  for (let n = 0; n < 5; n++) restarts.onDeath(1);
  expect(restarts.onDeath(minuteMs)).toEqual({ delayMs: 100 });
  expect(restarts.onDeath(1)).toEqual({ delayMs: 400 });
});

test("five starts that fail in a row are a failure of the command", () => {
  const restarts = new Restarts();
  restarts.onDeath(minuteMs);
  for (let n = 0; n < 4; n++) expect(restarts.onDeath(undefined)).toHaveProperty("delayMs");
  expect(restarts.onDeath(undefined)).toEqual({ failedStarts: 5 });
});

test("a start that succeeds ends the row", () => {
  const restarts = new Restarts();
  restarts.onDeath(1);
  for (let n = 0; n < 4; n++) restarts.onDeath(undefined);
  expect(restarts.onDeath(1)).toEqual({ delayMs: 30_000 });
  expect(restarts.onDeath(undefined)).toEqual({ delayMs: 30_000 });
});

test("a first start that fails is a failure at once", () => {
  expect(new Restarts().onDeath(undefined)).toEqual({ failedStarts: 1 });
});
