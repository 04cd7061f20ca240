import { expect, test } from "vitest";
import { notTakenOrNotYet } from "./outcomes.ts";

test("an order is not taken only after window and margin, by the broker's clock", () => {
  const lastSentAt = new Date("2026-01-01T00:00:00Z");
  const after = (ms: number) =>
    notTakenOrNotYet(new Date(lastSentAt.getTime() + ms), { lastSentAt, windowMs: 30_000, marginMs: 1_000 }).kind;
  expect([after(-3_600_000), after(30_001), after(31_000), after(31_001)]).toEqual([
    "not-taken-yet",
    "not-taken-yet",
    "not-taken-yet",
    "not-taken",
  ]);
});
