/** The result of a run of the tests: written by our reporter inside Vitest, read by `npm test`. */
import type { Result } from "./result.ts";

export interface Report {
  readonly files: readonly FileReport[];
  /** Errors that belong to no file. */
  readonly strayErrors: readonly string[];
}

export interface FileReport {
  readonly name: string;
  readonly seconds: number;
  readonly tests: readonly {
    readonly name: string;
    readonly state: "passed" | "failed" | "skipped";
    readonly error?: string;
  }[];
  /** Errors of the file outside its tests: it could not be loaded, or a rejection was not handled. */
  readonly errors: readonly string[];
}

/** A name is worth a line at the end, as long as one can still read them all. */
const namesMax = 20;
const slowestMax = 10;

const hasFailed = (file: FileReport): boolean =>
  file.errors.length > 0 || file.tests.some(({ state }) => state === "failed");

export const failedFiles = ({ files }: Report): readonly FileReport[] => files.filter(hasFailed);

/** An error outside a test counts as one failure. So does a run that tested nothing. */
export function count({ files, strayErrors }: Report): Result {
  const tests = files.flatMap((file) => file.tests);
  const inState = (state: string) => tests.filter((test) => test.state === state);
  const outside = files.filter((file) => file.errors.length > 0).length + strayErrors.length;
  const skipped = inState("skipped");
  const names = skipped.slice(0, namesMax).map((test) => `  ${test.name}`);
  const more = skipped.length > namesMax ? [`  and ${skipped.length - namesMax} more`] : [];
  return {
    passed: inState("passed").length,
    failed: tests.length === 0 ? Math.max(outside, 1) : inState("failed").length + outside,
    skipped: skipped.length,
    notes: skipped.length > 0 ? ["Skipped tests:", ...names, ...more] : [],
  };
}

/** The report with the second results of some files in place of their first ones. */
export function replaceFiles(report: Report, second: readonly FileReport[]): Report {
  const byName = new Map(second.map((file) => [file.name, file]));
  return { ...report, files: report.files.map((file) => byName.get(file.name) ?? file) };
}

/** A line for each failure in a file: the file, the test and its error. */
export function errorsOf({ name, tests, errors }: FileReport): readonly string[] {
  const failed = tests.filter(({ state }) => state === "failed");
  return [
    ...failed.map((test) => `  ${name} > ${test.name}: ${test.error ?? "no error was reported"}`),
    ...errors.map((error) => `  ${name}: ${error}`),
  ];
}

export function slowestFiles({ files }: Report): readonly string[] {
  if (files.length <= slowestMax) return [];
  const slowest = [...files].sort((a, b) => b.seconds - a.seconds).slice(0, slowestMax);
  const lines = slowest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}`);
  return [`The ${slowestMax} slowest of ${files.length} files:`, ...lines];
}
