import { expect, test } from "vitest";
import { judge, type Point, percentile, ratesOf, slopeOf } from "./series.ts";

const points = (value: (n: number) => number, count = 20): Point[] =>
  Array.from({ length: count }, (_, n) => ({ at: n * 10, value: value(n) }));

const judged = (value: (n: number) => number, noise = 1) =>
  judge({ name: "memory", unit: "MB", noise, points: points(value) });

test("a series that grows to its end grows without bound; one that has filled up does not", () => {
  expect(judged((n) => 100 + 5 * n)).toMatchObject({ first: 100, last: 195, grows: true, perHour: 1_800 });
  expect(judged((n) => Math.min(150, 100 + 10 * n)).grows).toBe(false);
  expect(judged((n) => 100 + (n % 2)).grows).toBe(false);
  expect(judged((n) => 200 - 5 * n).grows).toBe(false);
});

test("growth within the noise does not count", () => {
  expect(judged((n) => n, 20).grows).toBe(false);
  expect(judged((n) => n, 5).grows).toBe(true);
});

test("slopes and percentiles of few values", () => {
  expect(slopeOf([])).toBe(0);
  expect(slopeOf(points((n) => 3 * n, 2))).toBeCloseTo(0.3);
  expect([percentile([], 0.5), percentile([3, 1, 2], 0.5), percentile([1, 2, 3], 1)]).toEqual([0, 2, 3]);
});

test("bytes per command are constant while the table grows with the commands", () => {
  const commands = points((n) => 100 * n);
  expect(
    new Set(
      ratesOf(
        points((n) => 5_000 * n),
        commands,
      ).map(({ value }) => value),
    ),
  ).toEqual(new Set([50]));
  expect(
    ratesOf(
      points((n) => n),
      points(() => 7),
    ),
  ).toEqual([]);
});
