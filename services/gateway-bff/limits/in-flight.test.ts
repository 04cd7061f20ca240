import { expect, test } from "vitest";
import { InFlight } from "./in-flight.ts";

test("an address that has as many as it may gets no more until one ends, and ending twice counts once", () => {
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
