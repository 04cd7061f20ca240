/** Compares a translated page with its original: everything that a reader copies or looks up must be the same. */
import { allBlocksOf, codeSpansOf, headingsOf, type Part, proseOf, rawCellsOf, tablesOf } from "./markdown.ts";

/** What differs, one sentence each, with the lines of both pages. Empty if the translation is up to date. */
export function differencesOf(original: string, translated: string): string[] {
  return [
    ...differentHeadings(original, translated),
    ...differentBlocks(allBlocksOf(original), allBlocksOf(translated)),
    ...differentTables(tablesOf(original), tablesOf(translated)),
    ...differentSections(sectionsWithCode(original), sectionsWithCode(translated)),
  ];
}

/** The translation with the code blocks of the original; undefined if their number differs. */
export function withBlocksOf(original: string, translated: string): string | undefined {
  const [from, to] = [allBlocksOf(original), allBlocksOf(translated)];
  if (from.length !== to.length) return undefined;
  const lines = translated.split("\n");
  // From the last to the first: the lines of the others stay where they are.
  for (const [index, { line, text }] of [...to.entries()].reverse())
    lines.splice(line - 1, text.split("\n").length, from[index]?.text ?? text);
  return lines.join("\n");
}

/** If a heading is missing, the first one is reported that differs in its level or in the number of its blocks. */
function differentHeadings(original: string, translated: string): string[] {
  const [from, to] = [headingsOf(original), headingsOf(translated)];
  const shapes = [shapesOf(original, from), shapesOf(translated, to)] as const;
  const levels = shapes.map((all) => all.map(({ level }) => level).join());
  if (levels[0] === levels[1]) return [];
  const at = longer(from, to).findIndex(
    (_, index) =>
      shapes[0][index]?.level !== shapes[1][index]?.level || shapes[0][index]?.blocks !== shapes[1][index]?.blocks,
  );
  return [
    `${from.length} headings, translated ${to.length}: ${shown(from[at])} became ${shown(to[at])} (${where(from[at], to[at])})`,
  ];
}

function shapesOf(text: string, headings: readonly Part[]) {
  const blocks = allBlocksOf(text);
  return headings.map((heading, index) => {
    const end = headings[index + 1]?.line ?? Number.POSITIVE_INFINITY;
    const own = blocks.filter(({ line }) => line > heading.line && line < end);
    return { level: heading.text.indexOf(" "), blocks: own.length };
  });
}

/** Only the first block that is missing or added is reported: those after it are only moved. */
function differentBlocks(original: readonly Part[], translated: readonly Part[]): string[] {
  const different = longer(original, translated).flatMap((_, index) => {
    const [from, to] = [original[index], translated[index]];
    return from?.text === to?.text
      ? []
      : [`code block ${index + 1}: ${firstDifference(from, to)} (${where(from, to)})`];
  });
  return original.length === translated.length ? different : different.slice(0, 1);
}

function firstDifference(from: Part | undefined, to: Part | undefined): string {
  if (!from || !to) return from ? "is not translated" : "is not in the original";
  const [was, is] = [from.text.split("\n"), to.text.split("\n")];
  const at = longer(was, is).findIndex((_, index) => was[index] !== is[index]);
  return differentText(was[at] ?? "no more lines", is[at] ?? "no more lines");
}

/** Lines of JSON are long: both are shown from shortly before the first character that differs. */
function differentText(was: string, is: string): string {
  const at = [...was].findIndex((_, index) => was[index] !== is[index]);
  const from = Math.max(0, (at < 0 ? was.length : at) - 20);
  const excerpt = (line: string) => JSON.stringify(line.slice(from, from + 80));
  return `expected ${excerpt(was)}, found ${excerpt(is)}`;
}

function differentTables(original: readonly Part[][], translated: readonly Part[][]): string[] {
  if (original.length !== translated.length)
    return [`${original.length} tables, translated ${translated.length}: ${describeTables(original, translated)}`];
  return original.flatMap((rows, table) => differentRows(`table ${table + 1}`, rows, translated[table] ?? []));
}

const describeTables = (original: readonly Part[][], translated: readonly Part[][]): string =>
  [original, translated].map((tables) => `lines ${tables.map(([head]) => head?.line).join(", ")}`).join(" and ");

function differentRows(table: string, original: readonly Part[], translated: readonly Part[]): string[] {
  const different = longer(original, translated).flatMap((_, index) => {
    const [from, to] = [original[index], translated[index]];
    const [was, is] = [codeOfCells(from), codeOfCells(to)];
    return was === is ? [] : [`${table}, row ${index}: expected ${was}, found ${is} (${where(from, to)})`];
  });
  return original.length === translated.length ? different : different.slice(0, 1);
}

/** The code of each cell, sorted: languages differ in the order of words. */
const codeOfCells = (row: Part | undefined): string =>
  row ? `| ${rawCellsOf(row.text).map(sortedCode).join(" | ")} |` : "no row";

const sortedCode = (text: string): string => codeSpansOf(text).sort().map(inBackticks).join(" ");

interface Section {
  readonly heading: Part | undefined;
  readonly code: ReadonlySet<string>;
}

/** For each heading the code in the sentences below it; tables are compared row by row. */
function sectionsWithCode(text: string): Section[] {
  const lines = proseOf(text).split("\n");
  const headings = headingsOf(text);
  return [undefined, ...headings].map((heading, index) => {
    const body = lines.slice((heading?.line ?? 1) - 1, (headings[index]?.line ?? lines.length + 1) - 1);
    return { heading, code: new Set(codeSpansOf(body.filter((line) => !line.startsWith("|")).join("\n"))) };
  });
}

function differentSections(original: readonly Section[], translated: readonly Section[]): string[] {
  if (original.length !== translated.length) return [];
  return original.flatMap(({ heading, code }, index) => {
    const other = translated[index];
    const missing = [...code].filter((span) => !other?.code.has(span)).map(inBackticks);
    const added = [...(other?.code ?? [])].filter((span) => !code.has(span)).map(inBackticks);
    const parts = [
      missing.length > 0 && `misses ${missing.join(", ")}`,
      added.length > 0 && `adds ${added.join(", ")}`,
    ];
    const found = parts.filter((part) => part !== false);
    return found.length > 0
      ? [`text below ${shown(heading)}: ${found.join(" and ")} (${where(heading, other?.heading)})`]
      : [];
  });
}

const inBackticks = (code: string): string => `\`${code}\``;

const shown = (part: Part | undefined): string => (part ? JSON.stringify(part.text) : "nothing");

const where = (from: Part | undefined, to: Part | undefined): string =>
  `line ${from?.line ?? "?"} of the original, ${to?.line ?? "?"} of the translation`;

const longer = <T>(a: readonly T[], b: readonly T[]): readonly T[] => (a.length >= b.length ? a : b);
