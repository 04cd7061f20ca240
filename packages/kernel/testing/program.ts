/**
 * The programs that tests start, built once by `npm test`: a process of a built one is ready with a third of the work.
 * TODOKE_TEST_PROGRAMS names a JSON file with the built file of each source file.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const list = process.env.TODOKE_TEST_PROGRAMS;
const built: Readonly<Record<string, string>> = list ? JSON.parse(readFileSync(list, "utf8")) : {};

/** What to start in place of a source file: the file itself where nothing was built. */
export function programOf(source: URL): string {
  const file = fileURLToPath(source);
  return built[file] ?? file;
}
