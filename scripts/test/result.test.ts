import { expect, test } from "vitest";
import { failed, lastLine, passed, skipped, sum } from "./result.ts";
import { count } from "./vitest.ts";

const line = (ci: boolean, ...results: Parameters<typeof sum>[0]) => lastLine(sum(results), { ci });

test("the last line counts what passed and what failed, and what was skipped if anything was", () => {
  expect(line(false, passed, passed, failed)).toBe("2 passed, 1 failed");
  expect(line(false, passed, skipped("no Redis"))).toBe("1 passed, 0 failed, 1 skipped");
});

test("under CI what was skipped has failed", () => {
  expect(line(true, passed, skipped("no Redis"))).toBe("1 passed, 1 failed");
});

const file = (status: string, ...statuses: string[]) => ({
  name: "a.test.ts",
  status,
  assertionResults: statuses.map((one, index) => ({ status: one, fullName: `test ${index}` })),
});

test("tests are counted one by one, and the skipped ones are named", () => {
  const report = {
    testResults: [file("failed", "passed", "failed", "skipped"), file("passed", "passed", "pending", "todo")],
  };
  const result = count(report, 1);
  expect(result).toMatchObject({ passed: 2, failed: 1, skipped: 3 });
  expect(result.notes).toEqual(["Skipped tests:", "  test 2", "  test 1", "  test 2"]);
});

test("a test file that cannot be loaded is a failure", () => {
  expect(count({ testResults: [file("failed"), file("passed", "passed")] }, 1)).toMatchObject({ passed: 1, failed: 1 });
});

test("a run that fails without a failed test, or without a report, is a failure", () => {
  expect(count({ testResults: [file("passed", "passed")] }, 1)).toMatchObject({ passed: 1, failed: 1 });
  expect(count({ testResults: [] }, 1)).toMatchObject({ passed: 0, failed: 1 });
});

test("a run in which nothing was tested is not a success", () => {
  expect(count({ testResults: [] }, 0)).toMatchObject({ passed: 0, failed: 1 });
});
