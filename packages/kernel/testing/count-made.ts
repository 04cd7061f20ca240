/** Counts what a test run makes, so that `npm test` can print it: TODOKE_TEST_COUNTS names a folder with a file for each. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";

export function countMade(what: "databases" | "processes"): void {
  const folder = process.env.TODOKE_TEST_COUNTS;
  if (folder) appendFileSync(join(folder, what), ".");
}
