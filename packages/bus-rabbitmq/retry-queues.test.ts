import fc from "fast-check";
import { expect, test } from "vitest";
import { chooseStep, defaultStepsMs, sortSteps } from "./retry-queues.ts";

/** The steps of one delay. */
function splitDelay(delayMs: number, stepsMs: readonly number[]): number[] {
  const step = chooseStep(delayMs, stepsMs);
  return step.leftMs > 0 ? [step.delayMs, ...splitDelay(step.leftMs, stepsMs)] : [step.delayMs];
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

test("a delay is never shortened and grows to at most 2.5 times its length", () => {
  const waits = fc.double({ min: 100, max: 86_400_000, noNaN: true });
  fc.assert(
    fc.property(waits, (delayMs) => {
      const total = sum(splitDelay(delayMs, defaultStepsMs));
      expect(total).toBeGreaterThanOrEqual(delayMs);
      expect(total).toBeLessThanOrEqual(2.5 * delayMs);
    }),
  );
});

test("no delay takes no step, and the shortest delay takes the shortest step", () => {
  expect(chooseStep(0, defaultStepsMs)).toEqual({ delayMs: 0, leftMs: 0 });
  expect(chooseStep(0.1, defaultStepsMs)).toEqual({ delayMs: 100, leftMs: 0 });
});

test("a step of exactly the delay is used", () => {
  expect(chooseStep(1_000, defaultStepsMs)).toEqual({ delayMs: 1_000, leftMs: 0 });
});

test("with a single step every delay is a multiple of it", () => {
  expect(splitDelay(350, [100])).toEqual([100, 100, 100, 100]);
});

test("steps are sorted, and invalid steps are rejected", () => {
  expect(sortSteps([500, 100])).toEqual([100, 500]);
  expect(sortSteps(defaultStepsMs)).toEqual(defaultStepsMs);
  for (const steps of [[], [0], [1.5], [-1], [Number.NaN], [2 ** 32]])
    expect(() => sortSteps(steps)).toThrow("delayStepsMs");
});
