/** Checks the table of the seeds: every requirement has code and a test or a decision, and all of them exist. */
import { rawCellsOf, sectionOf, sectionsOf, tablesOf } from "./markdown.ts";

export interface Repository {
  /** The file's text, "" for a folder, undefined if there is none; by its path relative to the page. */
  readonly read: (path: string) => string | undefined;
}

interface Reference {
  readonly path: string;
  /** The name of a test in that file. */
  readonly test?: string;
}

/** What is wrong, one sentence each. */
export const seedErrors = (page: string, repository: Repository): string[] =>
  seedsOf(page).flatMap((seed) =>
    rowsOfSeed(page, seed).flatMap((cells, index) => [
      ...rowErrors(cells, index + 1).map((error) => `${seed}, row ${index + 1} ${error}`),
      ...cells
        .flatMap(referencesIn)
        .flatMap((reference) => referenceErrors(reference, repository))
        .map((error) => `${seed}, row ${index + 1}: ${error}`),
    ]),
  );

export const seedsOf = (page: string): string[] => sectionsOf(page).filter((heading) => heading.startsWith("Seed "));

/** The cells of each requirement, without the head of the table. */
export const rowsOfSeed = (page: string, seed: string): string[][] =>
  tablesOf(sectionOf(page, seed)).flatMap(([, ...rows]) => rows.map(({ text }) => rawCellsOf(text)));

function rowErrors([number = "", requirement = "", code = "", heldBy = "", ...more]: string[], expected: number) {
  const isDecided = referencesIn(heldBy).some(({ path }) => /^adr\/\d{4}-/.test(path));
  const isTested = referencesIn(heldBy).some(({ path }) => path.endsWith(".test.ts"));
  return [
    ...(number.trim() === String(expected) ? [] : [`has the number ${number.trim()}`]),
    ...(requirement.trim() === "" || more.length > 0 ? ["is not a number, a requirement, code and what holds it"] : []),
    ...(referencesIn(code).length > 0 ? [] : ["links no code"]),
    ...(isDecided || isTested ? [] : ["links neither a test nor a decision"]),
  ];
}

const referencesIn = (cell: string): Reference[] =>
  [...cell.matchAll(/\]\(([^()\s]+)\)(?: "([^"]+)")?/g)].map(([, path = "", test]) => ({
    path,
    ...(test !== undefined && { test }),
  }));

function referenceErrors({ path, test }: Reference, { read }: Repository): string[] {
  const text = read(path);
  if (text === undefined) return [`${path} does not exist`];
  return test === undefined || text.includes(test) ? [] : [`${path} has no test "${test}"`];
}
