import { expect, test } from "vitest";
import { circuitBreaker } from "./circuit-breaker.ts";

function setup() {
  const clock = { ms: 0 };
  return { clock, ...circuitBreaker({ failuresMax: 3, openMs: 10_000, now: () => clock.ms }) };
}

test("failures in a row open the circuit; a success in between resets the count", () => {
  const { waitMs, failed, succeeded } = setup();
  for (const tell of [failed, failed, succeeded, failed, failed]) tell();
  expect(waitMs()).toBe(0);
  failed();
  expect(waitMs()).toBe(10_000);
});

test("then one trial call goes through; its success closes the circuit", () => {
  const { clock, waitMs, failed, succeeded } = setup();
  for (const tell of [failed, failed, failed]) tell();
  clock.ms = 10_000;
  expect([waitMs(), waitMs(), waitMs()]).toEqual([0, 1_000, 1_000]);
  succeeded();
  expect([waitMs(), waitMs()]).toEqual([0, 0]);
});

test("a trial call that fails, or never reports, opens the circuit again", () => {
  const { clock, waitMs, failed } = setup();
  for (const tell of [failed, failed, failed]) tell();
  clock.ms = 10_000;
  expect(waitMs()).toBe(0);
  clock.ms = 11_000;
  failed();
  expect(waitMs()).toBe(10_000);
  clock.ms = 21_000;
  expect(waitMs()).toBe(0); // and is never heard of again
  clock.ms = 30_999;
  expect(waitMs()).toBe(1);
  clock.ms = 31_000;
  expect(waitMs()).toBe(0);
});
