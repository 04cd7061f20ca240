/** Runs the tests with their own progress on the screen, and counts them by Vitest's report. */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./command.ts";
import type { Result } from "./result.ts";

export interface TestRun {
  /** For Vitest: which tests to run. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** What we read of the report of Vitest's json reporter. */
export interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** A name is worth a line at the end, as long as one can still read them all. */
const namesMax = 20;

export async function runTests({ args, env, signal }: TestRun): Promise<Result> {
  // The tests keep their temporary files here too, so that those of a test that was killed go with the rest.
  const folder = await mkdtemp(join(tmpdir(), "todoke-tests-"));
  await chmod(folder, 0o711); // PostgreSQL, which root runs under another account, must get through
  try {
    const file = join(folder, "report.json");
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
    const code = await run(["vitest", "run", ...reporters, ...args], { env: { ...env, TMPDIR: folder }, signal });
    const result = count(await readReport(file), code);
    const only = args.length > 0 ? [`Of the tests, only those that match "${args.join(" ")}" were run.`] : [];
    return { ...result, notes: [...only, ...result.notes] };
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** A run that was stopped, or broke down, leaves none. */
async function readReport(file: string): Promise<Report> {
  const text = await readFile(file, "utf8").catch(() => `{ "testResults": [] }`);
  return JSON.parse(text);
}

/**
 * A file that could not be loaded has no tests and counts as one failure. So does a run that failed for no test's fault,
 * and one that found nothing to test.
 */
export function count(report: Report, exitCode: number): Result {
  const tests = report.testResults.flatMap((file) => file.assertionResults);
  const passed = tests.filter((test) => test.status === "passed").length;
  const failedTests = tests.filter((test) => test.status === "failed").length;
  const failedFiles = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  );
  const failed = failedTests + failedFiles.length;
  const skipped = tests.filter((test) => test.status !== "passed" && test.status !== "failed");
  const names = skipped.slice(0, namesMax).map((test) => `  ${test.fullName}`);
  const more = skipped.length > namesMax ? [`  and ${skipped.length - namesMax} more`] : [];
  return {
    passed,
    failed: failed === 0 && (exitCode !== 0 || tests.length === 0) ? 1 : failed,
    skipped: skipped.length,
    notes: skipped.length > 0 ? ["Skipped tests:", ...names, ...more] : [],
  };
}
