/** Loaded into Vitest beside its own reporter: writes what we count to the file that TODOKE_TEST_REPORT names. */
import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";
import { root } from "./command.ts";
import type { FileReport, Report } from "./report.ts";

export default class CountingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const path = process.env.TODOKE_TEST_REPORT;
    if (path) writeFileSync(path, JSON.stringify(reportOf(modules, unhandled)));
  }
}

function reportOf(modules: readonly TestModule[], unhandled: readonly SerializedError[]): Report {
  const ids = new Set(modules.map(({ moduleId }) => moduleId));
  const fileOf = (error: SerializedError): unknown => error.VITEST_TEST_PATH;
  return {
    files: modules.map((module) => {
      const own = unhandled.filter((error) => fileOf(error) === module.moduleId);
      return fileReport(module, [...module.errors(), ...own]);
    }),
    strayErrors: unhandled.filter((error) => !ids.has(String(fileOf(error)))).map(firstLine),
  };
}

function fileReport(module: TestModule, errors: readonly SerializedError[]): FileReport {
  const { duration, collectDuration, setupDuration } = module.diagnostic();
  const tests = [...module.children.allTests()];
  // A hook that fails is an error of its suite.
  const suites = [...module.children.allSuites()].flatMap((suite) => suite.errors());
  return {
    name: relative(root, module.moduleId),
    seconds: (duration + collectDuration + setupDuration) / 1_000,
    tests: tests.map(testReport),
    errors: [...errors, ...suites].map(firstLine),
  };
}

function testReport(test: TestCase): FileReport["tests"][number] {
  const { state, errors } = test.result();
  const [error] = errors ?? [];
  return {
    name: test.fullName,
    state: state === "pending" ? "skipped" : state,
    ...(error && { error: firstLine(error) }),
  };
}

const firstLine = (error: SerializedError): string => String(error.message).split("\n")[0] ?? "";
