/**
 * Programs that tests start, built once by `npm test`: a built program starts with a third of the work.
 * TODOKE_TEST_PROGRAMS names a JSON file that maps source files to built files.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const list = process.env.TODOKE_TEST_PROGRAMS;
const built: Readonly<Record<string, string>> = list ? JSON.parse(readFileSync(list, "utf8")) : {};

/** Returns the built file of a source file, or the source file if there is none. */
export function resolveProgram(source: URL): string {
  const file = fileURLToPath(source);
  return built[file] ?? file;
}
