/**
 * `npm test`: everything that must hold, from one command on a fresh machine.
 *
 * Every step runs, also after one that failed. The end lists what could not run and what to do about it; the very last
 * line is `N passed, N failed`, and the exit code agrees with it. With CI=true, a skipped step counts as failed. An interrupt
 * stops all processes and leaves no folder behind.
 *
 * Arguments go to Vitest: `npm test -- packages/kernel` runs only the tests there, and all the other steps.
 * `--times=10` runs them ten times in a row, to find flaky ones.
 * `--quick` (`npm run test:quick`) leaves out the event contracts and every test file that starts processes, and repeats random
 * tests less often.
 */
import { join } from "node:path";
import { check, root } from "./test/command.ts";
import { type Engines, findEngines } from "./test/engines.ts";
import { openPrograms } from "./test/programs.ts";
import { protobuf } from "./test/protobuf.ts";
import { failed, lastLine, type Result, sum } from "./test/result.ts";
import { fetchTools } from "./test/tools.ts";
import { runTests } from "./test/vitest.ts";

const ci = process.env.CI === "true";
const isQuick = process.argv.includes("--quick");
const timesOption = /^--times=([1-9]\d{0,2})$/;
const times = Number(process.argv.map((arg) => timesOption.exec(arg)?.[1]).find(Boolean) ?? 1);
const args = process.argv.slice(2).filter((arg) => arg !== "--quick" && !timesOption.test(arg));
const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => interrupted.abort(name));

const { signal } = interrupted;
const results: Result[] = [];

async function step(name: string, run: () => Promise<Result>): Promise<void> {
  if (interrupted.signal.aborted) return;
  console.log(`\n▸ ${name}`);
  const start = performance.now();
  const result = await run().catch((error: unknown) => {
    if (!interrupted.signal.aborted) console.error(error);
    return failed;
  });
  results.push(result);
  const seconds = ((performance.now() - start) / 1_000).toFixed(1);
  const mark = result.failed > 0 ? "✗" : result.passed > 0 ? "✓" : "–";
  if (!interrupted.signal.aborted) console.log(`${mark} ${name} (${seconds} s)`);
}

async function main(): Promise<void> {
  await using engines = findEngines(signal);
  using programs = openPrograms();
  if (isQuick) {
    // In parallel with the tests, which leave the CPU idle at times.
    await Promise.all([staticChecks(), quickTests(engines)]);
    return;
  }
  await step("tools", () => fetchTools(signal));
  await staticChecks();
  await step("event contracts", () => protobuf(signal));
  await step("engines", () => engines.find());
  await step("programs", () => programs.build());
  const env = { ...engines.urls(), ...programs.env() };
  for (let time = 1; time <= times; time++)
    await step(times > 1 ? `tests, run ${time} of ${times}` : "tests", () => runTests({ args, env, signal }));
}

async function staticChecks(): Promise<void> {
  await step("types", () => check(["tsc"], signal));
  await step("types of the console", () => check(["tsc", "-p", "console"], signal));
  await step("types of the demo's page", () => check(["tsc", "-p", "examples/arena-shop/page"], signal));
  await step("lint", () => check(["biome", "check", "."], signal));
  await step("unused code", () => check(["knip", "--cache"], signal));
}

async function quickTests(engines: Engines): Promise<void> {
  await step("engines", () => engines.find());
  // Kept from run to run: only dependencies are compiled this way, and they seldom change.
  const compiled = join(root, "node_modules/.cache/todoke-compiled");
  const env = { ...engines.urls(), TODOKE_TEST_QUICK: "true", NODE_COMPILE_CACHE: compiled };
  await step("tests", () => runTests({ args, env, signal }));
}

await main();

const total = sum(results);
const { aborted, reason } = interrupted.signal;
for (const note of total.notes) console.log(note);
if (aborted) console.log(`Interrupted by ${reason}: not everything was run.`);
if (ci && total.skipped > 0) console.log(`CI=true: the ${total.skipped} skipped count as failed.`);
console.log(lastLine(total, { ci }));
// Do not wait for an engine that was still starting at the interrupt; its supervisor stops it.
process.exit(aborted || total.failed > 0 || (ci && total.skipped > 0) ? 1 : 0);
