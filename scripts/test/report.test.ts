import { expect, test } from "vitest";
import { count, errorsOf, type FileReport, failedFiles, replaceFiles, slowestFiles } from "./report.ts";

type State = FileReport["tests"][number]["state"];

const file = (name: string, states: readonly State[], more: Partial<FileReport> = {}): FileReport => ({
  name,
  seconds: 1,
  tests: states.map((state, index) => ({
    name: `test ${index}`,
    state,
    ...(state === "failed" && { error: "1 is not 2" }),
  })),
  errors: [],
  ...more,
});

const report = (...files: FileReport[]) => ({ files, strayErrors: [] });

test("tests are counted one by one, and the skipped ones are named", () => {
  const result = count(report(file("a", ["passed", "failed", "skipped"]), file("b", ["passed", "skipped"])));
  expect(result).toMatchObject({ passed: 2, failed: 1, skipped: 2 });
  expect(result.notes).toEqual(["Skipped tests:", "  test 2", "  test 1"]);
});

test("a file that cannot be loaded, an unhandled rejection and an error of no file are failures", () => {
  const broken = file("a", [], { errors: ["cannot be loaded"] });
  const unhandled = file("b", ["passed"], { errors: ["a promise was rejected"] });
  expect(count(report(broken, unhandled))).toMatchObject({ passed: 1, failed: 2 });
  expect(count({ files: [file("a", ["passed"])], strayErrors: ["out of memory"] })).toMatchObject({ failed: 1 });
});

test("a run in which nothing was tested is not a success", () => {
  expect(count(report())).toMatchObject({ passed: 0, failed: 1 });
});

test("a file that passes when it is run again counts by its second result; one that fails again is a failure", () => {
  const first = report(file("flaky", ["failed"]), file("broken", ["failed"]), file("sound", ["passed"]));
  expect(failedFiles(first).map(({ name }) => name)).toEqual(["flaky", "broken"]);
  const second = replaceFiles(first, [file("flaky", ["passed"]), file("broken", ["failed"])]);
  expect(count(second)).toMatchObject({ passed: 2, failed: 1 });
});

test("a failure is reported with its file, its test and its first error", () => {
  expect(errorsOf(file("a.test.ts", ["passed", "failed"], { errors: ["a promise was rejected"] }))).toEqual([
    "  a.test.ts > test 1: 1 is not 2",
    "  a.test.ts: a promise was rejected",
  ]);
});

test("the ten slowest files are named, slowest first", () => {
  const files = Array.from({ length: 12 }, (_, n) => file(`file-${n}`, ["passed"], { seconds: n }));
  const [title, ...lines] = slowestFiles(report(...files));
  expect(title).toBe("The 10 slowest of 12 files:");
  expect(lines).toHaveLength(10);
  expect(lines[0]).toBe("    11.0 s  file-11");
});
