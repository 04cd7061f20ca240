import { expect, test } from "vitest";
import { InFlight } from "./in-flight.ts";

test("an address at its limit gets a place when a request ends; ending is idempotent", () => {
  const inFlight = new InFlight(2);
  const [first, second] = [inFlight.begin("a"), inFlight.begin("a")];
  expect([inFlight.begin("a"), typeof inFlight.begin("b")]).toEqual([undefined, "function"]);
  first?.();
  first?.();
  const third = inFlight.begin("a");
  expect([typeof third, inFlight.begin("a")]).toEqual(["function", undefined]);
  second?.();
  third?.();
  expect(inFlight.size).toBe(1); // Only "b" is left.
});
