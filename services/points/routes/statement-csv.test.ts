import { expect, test } from "vitest";
import type { StatementRow } from "../store/statement.ts";
import { type Part, rowsMax, statementCsv } from "./statement-csv.ts";

/** An endless statement. */
function endless() {
  const parts: Part[] = [];
  const read = async (part: Part) => {
    parts.push(part);
    const newest = BigInt(part.before ?? 9_000_000) - 1n;
    return Array.from({ length: part.limit }, (_, i) => ({ version: newest - BigInt(i) }) as StatementRow);
  };
  return { parts, read };
}

test("a part is read only after the previous one is consumed", async () => {
  const { parts, read } = endless();
  const text = statementCsv(read);
  for (const n of [1, 2, 3]) {
    await text.next();
    expect(parts.length).toBe(n);
  }
  await text.return(undefined);
  expect(parts.map(({ before }) => before)).toEqual([undefined, "8999000", "8998000"]);
});

test("a file has at most a million rows", async () => {
  expect(rowsMax).toBe(1_000_000);
  const { parts, read } = endless();
  let rows = 0;
  for await (const text of statementCsv(read, 2_500)) rows += text.split("\r\n").length - 1;
  expect(rows).toBe(1 + 2_500);
  expect(parts.map(({ limit }) => limit)).toEqual([1_000, 1_000, 500]);
});
