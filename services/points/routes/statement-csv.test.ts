import { expect, test } from "vitest";
import type { StatementRow } from "../store/statement.ts";
import { type Part, rowsMax, statementCsv } from "./statement-csv.ts";

/** A statement that never ends. */
function endless() {
  const asked: Part[] = [];
  const read = async (part: Part) => {
    asked.push(part);
    const newest = BigInt(part.before ?? 9_000_000) - 1n;
    return Array.from({ length: part.limit }, (_, i) => ({ version: newest - BigInt(i) }) as StatementRow);
  };
  return { asked, read };
}

test("a part is read when the one before it was taken, and not sooner", async () => {
  const { asked, read } = endless();
  const text = statementCsv(read);
  for (const n of [1, 2, 3]) {
    await text.next();
    expect(asked.length).toBe(n);
  }
  await text.return(undefined);
  expect(asked.map(({ before }) => before)).toEqual([undefined, "8999000", "8998000"]);
});

test("a file has a million rows at the most, to the row", async () => {
  expect(rowsMax).toBe(1_000_000);
  const { asked, read } = endless();
  let rows = 0;
  for await (const text of statementCsv(read, 2_500)) rows += text.split("\r\n").length - 1;
  expect(rows).toBe(1 + 2_500);
  expect(asked.map(({ limit }) => limit)).toEqual([1_000, 1_000, 500]);
});
