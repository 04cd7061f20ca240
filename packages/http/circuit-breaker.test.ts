import { expect, test } from "vitest";
import { circuitBreaker } from "./circuit-breaker.ts";

function setup() {
  const clock = { ms: 0 };
  return { clock, ...circuitBreaker({ failuresMax: 3, openMs: 10_000, now: () => clock.ms }) };
}

test("after failures in a row nothing goes through for a while; a success in between counts them anew", () => {
  const { waitMs, failed, succeeded } = setup();
  for (const tell of [failed, failed, succeeded, failed, failed]) tell();
  expect(waitMs()).toBe(0);
  failed();
  expect(waitMs()).toBe(10_000);
});

test("then one goes first while the others wait a little; its success lets all through", () => {
  const { clock, waitMs, failed, succeeded } = setup();
  for (const tell of [failed, failed, failed]) tell();
  clock.ms = 10_000;
  expect([waitMs(), waitMs(), waitMs()]).toEqual([0, 1_000, 1_000]);
  succeeded();
  expect([waitMs(), waitMs()]).toEqual([0, 0]);
});

test("its failure closes the way for as long again, and so does its silence", () => {
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
