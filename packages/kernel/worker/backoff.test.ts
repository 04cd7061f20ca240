import { expect, test } from "vitest";
import { backoffMs } from "./index.ts";

test("the backoff doubles from base to cap, with jitter of half either way", () => {
  const at = (attempt: number, random: number) => backoffMs(attempt, { baseMs: 1_000, capMs: 60_000 }, () => random);
  expect([1, 2, 3, 6, 50].map((attempt) => at(attempt, 0.5))).toEqual([2_000, 4_000, 8_000, 60_000, 60_000]);
  expect([at(1, 0), at(1, 1)]).toEqual([1_000, 3_000]);
});
