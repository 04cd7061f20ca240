/** Counts databases and processes of a test run for `npm test`. TODOKE_TEST_COUNTS is a folder with a file for each. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";

export function countMade(what: "databases" | "processes"): void {
  const folder = process.env.TODOKE_TEST_COUNTS;
  if (folder) appendFileSync(join(folder, what), ".");
}
