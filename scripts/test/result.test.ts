import { expect, test } from "vitest";
import { failed, lastLine, passed, skipped, sum } from "./result.ts";

const line = (ci: boolean, ...results: Parameters<typeof sum>[0]) => lastLine(sum(results), { ci });

test("the last line counts what passed and what failed, and what was skipped if anything was", () => {
  expect(line(false, passed, passed, failed)).toBe("2 passed, 1 failed");
  expect(line(false, passed, skipped("no Redis"))).toBe("1 passed, 0 failed, 1 skipped");
});

test("under CI what was skipped has failed", () => {
  expect(line(true, passed, skipped("no Redis"))).toBe("1 passed, 1 failed");
});
