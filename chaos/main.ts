/** `npm run chaos`: runs, shows progress and reports. `--help` explains the arguments. */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Arguments, readArguments, usage } from "./arguments.ts";
import { check } from "./check.ts";
import { readEvidence } from "./evidence.ts";
import { type Caught, caughtTable, formatLine, getPlanted, isCaught, runAllPlanted } from "./planted.ts";
import { showProgress } from "./progress.ts";
import { renderReport, summarize, toMarkdown, toText, violationsText } from "./report.ts";
import { type RunResult, run } from "./run.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());

process.exit(await main(process.argv.slice(2)));

async function main(argv: readonly string[]): Promise<number> {
  const given = readArguments(argv);
  if (given === "help") {
    console.log(usage);
    return 0;
  }
  if (!("seed" in given)) {
    for (const error of given) console.error(error);
    console.error("\n`npm run chaos -- --help` explains the arguments.");
    return 2;
  }
  if (given.check !== undefined) return checkAgain(given.check);
  const folder = resolve(given.out ?? (await mkdtemp(join(tmpdir(), "todoke-chaos-"))));
  return given.planted === undefined ? runAll(given, folder) : runDefects(given.planted, folder);
}

async function runAll(
  { seed, minutes, buses, services, rate, faultsPerMinute }: Arguments,
  folder: string,
): Promise<number> {
  const report = join(folder, "report.md");
  const results: RunResult[] = [];
  for (const bus of buses) {
    if (stopping.signal.aborted) break;
    const progress = showProgress(bus, minutes * 60_000);
    const result = await run({
      seed,
      bus,
      services,
      forMs: minutes * 60_000,
      rate,
      faultsPerMinute,
      folder: join(folder, bus),
      onProgress: progress.show,
      stopping: stopping.signal,
    });
    progress.end();
    if (result.violations.length > 0) console.log(violationsText(result));
    results.push(result);
    // After every bus, so that a run that is killed leaves its results.
    await writeFile(report, renderReport(results));
  }
  console.log(`\n${toText(summarize(results))}\n\nReport: ${report}`);
  if (stopping.signal.aborted) console.log("Interrupted: not everything was run.");
  return !stopping.signal.aborted && results.every(({ violations }) => violations.length === 0) ? 0 : 1;
}

/** Each defect must be caught by one of the invariants that it names. */
async function runDefects(name: string, folder: string): Promise<number> {
  let defects: ReturnType<typeof getPlanted>;
  try {
    defects = getPlanted(name);
  } catch (error) {
    console.error((error as Error).message);
    return 2;
  }
  const onCaught = (caught: Caught) => console.log(formatLine(caught).join("  "));
  const all = await runAllPlanted(defects, { folder, stopping: stopping.signal, onCaught });
  const table = caughtTable(all);
  await writeFile(join(folder, "planted.md"), `# Planted defects\n\n${toMarkdown(table)}\n`);
  console.log(`\n${toText(table)}\n\nEvidence: ${folder}`);
  return all.length === defects.length && all.every(isCaught) ? 0 : 1;
}

async function checkAgain(folder: string): Promise<number> {
  const violations = check(await readEvidence(resolve(folder)));
  for (const { invariant, what } of violations) console.log(`${invariant}: ${what}`);
  console.log(violations.length === 0 ? "Nothing was broken." : `${violations.length} violations`);
  return violations.length === 0 ? 0 : 1;
}
