import { existsSync, readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { rowsOfSeed, seedErrors, seedsOf } from "./seeds.ts";

const docs = new URL("../../docs/", import.meta.url);
const page = readFileSync(new URL("seeds.md", docs), "utf8");

function read(path: string): string | undefined {
  const url = new URL(path, docs);
  if (!existsSync(url)) return undefined;
  return statSync(url).isDirectory() ? "" : readFileSync(url, "utf8");
}

test("every requirement of the seeds has code, and a test or a decision, all of which exist", () => {
  expect(seedErrors(page, { read })).toEqual([]);
});

test("all five seeds are in the table", () => {
  expect(seedsOf(page).map((seed) => seed.slice(0, 8))).toEqual([
    "Seed 000",
    "Seed 001",
    "Seed 002",
    "Seed 003",
    "Seed 004",
  ]);
  expect(seedsOf(page).flatMap((seed) => rowsOfSeed(page, seed)).length).toBeGreaterThanOrEqual(194);
});

const row = '| 1 | an outbox | [a](a.ts) | [b](b.test.ts) "it works" |';
const seed = (...rows: string[]) =>
  `## Seed 9\n\n| # | requirement | code | held by |\n|---|---|---|---|\n${rows.join("\n")}\n`;
const files: Record<string, string> = {
  "a.ts": "",
  "b.test.ts": 'test("it works", () => {});',
  "adr/0001-x.md": "",
};
const errorsOf = (...rows: string[]) => seedErrors(seed(...rows), { read: (path) => files[path] });

test("a row is code and a test, or code and a decision", () => {
  expect(errorsOf(row)).toEqual([]);
  expect(errorsOf("| 1 | an outbox | [a](a.ts) | [ADR 1](adr/0001-x.md) |")).toEqual([]);
});

test.each([
  ["row 1 links neither a test nor a decision", row.replace("b.test.ts", "a.ts").replace(' "it works"', "")],
  ["row 1 links no code", row.replace("[a](a.ts)", "")],
  ["row 1 has the number 2", row.replace("| 1 |", "| 2 |")],
  ["row 1: c.ts does not exist", row.replace("a.ts", "c.ts")],
  ['row 1: b.test.ts has no test "it fails"', row.replace("works", "fails")],
  ["row 1 is not a number, a requirement, code and what holds it", row.replace("an outbox", " ")],
])("%s", (error, wrong) => {
  expect(errorsOf(wrong)).toEqual([`Seed 9, ${error}`]);
});
