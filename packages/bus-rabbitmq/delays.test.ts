import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultStepsMs, risingSteps, stepFor } from "./delays.ts";

/** The delays that one wait is made of. */
function delaysOf(waitMs: number, stepsMs: readonly number[]): number[] {
  const { delayMs, leftMs } = stepFor(waitMs, stepsMs);
  return leftMs > 0 ? [delayMs, ...delaysOf(leftMs, stepsMs)] : [delayMs];
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

test("a wait is never cut short, and grows to two and a half times its length at the most", () => {
  const waits = fc.double({ min: 100, max: 86_400_000, noNaN: true });
  fc.assert(
    fc.property(waits, (waitMs) => {
      const total = sum(delaysOf(waitMs, defaultStepsMs));
      expect(total).toBeGreaterThanOrEqual(waitMs);
      expect(total).toBeLessThanOrEqual(2.5 * waitMs);
    }),
  );
});

test("no wait is no step, and the shortest wait is the shortest step", () => {
  expect(stepFor(0, defaultStepsMs)).toEqual({ delayMs: 0, leftMs: 0 });
  expect(stepFor(0.1, defaultStepsMs)).toEqual({ delayMs: 100, leftMs: 0 });
});

test("a step that fits exactly is taken", () => {
  expect(stepFor(1_000, defaultStepsMs)).toEqual({ delayMs: 1_000, leftMs: 0 });
});

test("with one step every wait is made of that", () => {
  expect(delaysOf(350, [100])).toEqual([100, 100, 100, 100]);
});

test("steps are put in order, and steps that cannot work are refused", () => {
  expect(risingSteps([500, 100])).toEqual([100, 500]);
  expect(risingSteps(defaultStepsMs)).toEqual(defaultStepsMs);
  for (const steps of [[], [0], [1.5], [-1], [Number.NaN], [2 ** 32]])
    expect(() => risingSteps(steps)).toThrow("delayStepsMs");
});
