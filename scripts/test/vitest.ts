/**
 * Runs the tests with their own progress on the screen. A file that fails is run again on its own: if it passes then, it
 * is flaky, and the last lines say so; if it fails again, the run has failed.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./command.ts";
import { count, errorsOf, type FileReport, failedFiles, type Report, replaceFiles, slowestFiles } from "./report.ts";
import type { Result } from "./result.ts";

export interface TestRun {
  /** For Vitest: which tests to run. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly output?: "inherit" | "ignore";
}

/** Where more files fail than this, something is broken that a second run does not change. */
const rerunMax = 8;

export async function runTests({ args, env, signal, output = "inherit" }: TestRun): Promise<Result> {
  // The tests keep their temporary files here too, so that those of a test that was killed go with the rest.
  const folder = await mkdtemp(join(tmpdir(), "todoke-tests-"));
  await chmod(folder, 0o711); // PostgreSQL, which root runs under another account, must get through
  const counts = join(folder, "counts");
  await mkdir(counts);
  const vitest = (more: readonly string[]) =>
    runVitest(more, {
      file: join(folder, "report.json"),
      env: { NODE_COMPILE_CACHE: join(folder, "compiled"), ...env, TMPDIR: folder, TODOKE_TEST_COUNTS: counts },
      signal,
      output,
    });
  // The second run of a file is configured as the first was.
  const options = args.filter((arg) => arg.startsWith("--") && arg.includes("="));
  try {
    const first = await vitest(args);
    const second = await runAgain(failedFiles(first), (file) => vitest([...options, file]));
    const result = count(replaceFiles(first, second));
    const made = `${await sizeOf(join(counts, "databases"))} databases and ${await sizeOf(join(counts, "processes"))} processes were made.`;
    const notes = [...slowestFiles(first), made, ...result.notes, ...flakyNotes(first, second)];
    return {
      ...result,
      notes: args.length > 0 ? [`Not all tests were run: ${shortened(args.join(" "))}`, ...notes] : notes,
    };
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

interface VitestRun {
  /** Where the report goes. */
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly output: "inherit" | "ignore";
}

async function runVitest(args: readonly string[], { file, env, signal, output }: VitestRun): Promise<Report> {
  await rm(file, { force: true });
  const reporters = ["--reporter=default", "--reporter=./scripts/test/reporter.ts"];
  const code = await run(["vitest", "run", ...reporters, ...args], {
    env: { ...env, TODOKE_TEST_REPORT: file },
    signal,
    output,
  });
  return readFile(file, "utf8").then(JSON.parse, () => ({
    files: [],
    strayErrors: [`Vitest ended with ${code} and left no report.`],
  }));
}

/** One after the other, each with the machine to itself. */
async function runAgain(
  failed: readonly FileReport[],
  runFile: (name: string) => Promise<Report>,
): Promise<readonly FileReport[]> {
  if (failed.length > rerunMax) {
    console.log(`\n${failed.length} files failed: more than ${rerunMax} are not run again.`);
    return [];
  }
  const second: FileReport[] = [];
  for (const { name } of failed) {
    console.log(`\n${name} failed, and is run once more by itself.`);
    const { files, strayErrors } = await runFile(name);
    const file = files.find((each) => each.name === name);
    if (file) second.push({ ...file, errors: [...file.errors, ...strayErrors] });
  }
  return second;
}

function flakyNotes(first: Report, second: readonly FileReport[]): readonly string[] {
  const isStillFailing = new Set(failedFiles({ files: second, strayErrors: [] }).map(({ name }) => name));
  const flaky = failedFiles(first).filter(
    ({ name }) => second.some((file) => file.name === name) && !isStillFailing.has(name),
  );
  if (flaky.length === 0) return [];
  return ["Flaky: failed at first, passed when run again (docs/guides/flaky-tests.md):", ...flaky.flatMap(errorsOf)];
}

const shortened = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}…` : text);

/** How often something was counted: once per byte. */
const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );
