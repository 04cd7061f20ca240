/**
 * Programs that tests start, built once by `npm test`: a built program starts with a third of the work.
 * TODOKE_TEST_PROGRAMS names a JSON file that maps source files to built files, for each variant of a build.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** As it is; with every failpoint of chaos/patches; or with every failpoint and work by claims only. */
export type ProgramVariant = "plain" | "failpoints" | "claims-only";

const list = process.env.TODOKE_TEST_PROGRAMS;
const built: Partial<Record<ProgramVariant, Readonly<Record<string, string>>>> = list
  ? JSON.parse(readFileSync(list, "utf8"))
  : {};

/** Returns the built file of a source file, or undefined if there is none. */
export function findBuiltProgram(source: URL, variant: ProgramVariant): string | undefined {
  return built[variant]?.[fileURLToPath(source)];
}

/** Returns the built file of a source file, or the source file if there is none. */
export function resolveProgram(source: URL): string {
  return findBuiltProgram(source, "plain") ?? fileURLToPath(source);
}
