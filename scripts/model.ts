/**
 * `npm run model`: checks the formal models of docs/model exhaustively, and that the checker finds every planted bug.
 *
 * It needs Spin and a C compiler (Debian: `apt-get install spin gcc`), and is beside `npm test`. `npm run model -- inbox` checks
 * one model. The last line is `N passed, N failed`.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram, outputOf } from "./interop/peer.ts";
import { listVariants, models, readModel, resultOf, toRow, type Variant } from "./model/variants.ts";

const names = process.argv.slice(2);
const unknown = names.filter((name) => !models.includes(name));
if (unknown.length > 0) {
  console.error(`There is no model ${unknown.join(", ")}. Choose from: ${models.join(", ")}.`);
  process.exit(2);
}
for (const program of ["spin", "gcc"]) findProgram(program, `On Debian: apt-get install ${program}`);

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => interrupted.abort(name));
const { signal } = interrupted;
// At most 1.5 GB: a state is about 40 bytes.
const bounds = ["-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=1500"];

/** The report of the checker, and the last lines of the counterexample if there is one. */
async function check({ model, defines }: Variant): Promise<{ readonly report: string; readonly trail: string }> {
  const cwd = mkdtempSync(join(tmpdir(), "todoke-model-"));
  try {
    const run = (...command: string[]) => outputOf(command, { signal, cwd });
    const flags = defines.map((define) => `-D${define}`);
    // Spin writes its files beside the model.
    const file = `${model}.pml`;
    writeFileSync(join(cwd, file), readModel(model));
    await run("spin", ...flags, "-a", file);
    await run("gcc", "-O2", "-w", ...bounds, "-o", "pan", "pan.c");
    const report = await run("./pan", "-m20000", "-w22");
    const hasTrail = report.includes("wrote ");
    return { report, trail: hasTrail ? await run("spin", ...flags, "-t", file) : "" };
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

const rows: string[][] = [["model", "variant", "states", "seconds", "result"]];
let failed = 0;
const variants = (names.length > 0 ? names : models).flatMap(listVariants);
for (const variant of variants) {
  const result = resultOf(variant, await check(variant));
  if (!result.ok) failed++;
  const row = toRow(variant, result);
  rows.push(row);
  console.log(`${result.ok ? "✓" : "✗"} ${row.join("   ")}`);
}
console.log(
  `\n${rows.map((row, index) => `| ${row.join(" | ")} |${index === 0 ? `\n|${"---|".repeat(row.length)}` : ""}`).join("\n")}`,
);
console.log(`\nNode ${process.version}, ${cpus().length} cores`);
console.log(`${variants.length - failed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
