/**
 * Program that stands in for psql, which not every machine has: runs the file of `-f` on the database of its first argument,
 * one statement after the other, and ends at the first error. The files of deploy/postgres need no more than that.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { openDb } from "@todoke/kernel/db";

const { values, positionals } = parseArgs({
  options: { set: { type: "string", short: "v" }, file: { type: "string", short: "f" } },
  allowPositionals: true,
});
const [url = ""] = positionals;
if (values.set !== "ON_ERROR_STOP=1" || values.file === undefined)
  throw new Error("usage: psql URL -v ON_ERROR_STOP=1 -f FILE");

// No statement of these files has a semicolon inside.
const statements = readFileSync(values.file, "utf8").split(/;$/m);
const db = openDb({ url, poolMax: 1 });
try {
  for (const statement of statements) await db.query(statement);
} finally {
  await db.end();
}
