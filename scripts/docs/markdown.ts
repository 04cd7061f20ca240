/** Reads Markdown, as far as our pages use it: headings, links, tables and code. */

/** The page without fenced blocks; line numbers stay the same. */
export function proseOf(text: string): string {
  return text.replace(fence, (block) => "\n".repeat(block.split("\n").length - 1));
}

const fence = /^([ \t]*)(`{3,})([^\n]*)\n([\s\S]*?)^[ \t]*\2[ \t]*$/gm;

/** The fenced blocks of one language: "sql", "mermaid". */
export function blocksOf(text: string, language: string): string[] {
  const blocks = [...text.matchAll(fence)].filter(([, , , info = ""]) => info.trim() === language);
  return blocks.map(([, , , , body = ""]) => body);
}

export interface Part {
  readonly line: number;
  readonly text: string;
}

/** Every fenced block with its language, whole. */
export const allBlocksOf = (text: string): Part[] =>
  [...text.matchAll(fence)].map((match) => ({ line: lineAt(text, match.index), text: match[0] }));

/** Headings of all levels, with their number signs. */
export const headingsOf = (text: string): Part[] =>
  linesOf(proseOf(text)).filter(({ text: line }) => /^#{1,6} /.test(line));

/** Tables, each as its lines without the line of dashes. */
export function tablesOf(text: string): Part[][] {
  const tables: Part[][] = [];
  let last = -1;
  for (const row of linesOf(proseOf(text)).filter(({ text: line }) => line.startsWith("|"))) {
    if (row.line !== last + 1) tables.push([]);
    last = row.line;
    if (!/^\|[\s|:-]+\|$/.test(row.text) || !row.text.includes("-")) tables.at(-1)?.push(row);
  }
  return tables;
}

/** Inline code, in the order of the text. */
export const codeSpansOf = (text: string): string[] =>
  [...proseOf(text).matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);

const linesOf = (text: string): Part[] => text.split("\n").map((line, index) => ({ line: index + 1, text: line }));

const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;

/** Shell code: inline code, and blocks of "sh" or of no language. */
export function shellOf(text: string): string[] {
  return [...codeSpansOf(text), ...blocksOf(text, "sh"), ...blocksOf(text, "")];
}

/** Anchors of the headings, as GitHub builds them: "Two words, and" is "two-words-and". */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of proseOf(text).matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const slug = slugOf(heading);
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function slugOf(heading: string): string {
  const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
  return words.replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
}

export interface Link {
  readonly line: number;
  readonly target: string;
}

/** Links and images, inline or as references. */
export function linksOf(text: string): Link[] {
  return proseOf(text)
    .split("\n")
    .flatMap((line, index) => {
      const bare = line.replace(/`[^`]*`/g, "``");
      const found = [...bare.matchAll(/\]\(([^()\s]+)(?: "[^"]*")?\)/g), ...bare.matchAll(/^\[[^\]]+\]: +(\S+)/g)];
      return found.map(([, target = ""]) => ({ line: index + 1, target }));
    });
}

/** The text under a heading of the second level; empty if there is none. */
export function sectionOf(text: string, heading: string): string {
  const parts = text.split(/^## +(.+)$/m);
  const at = parts.findIndex((part, index) => index % 2 === 1 && plain(part) === heading);
  return at < 0 ? "" : (parts[at + 1] ?? "");
}

/** Every heading of the second level. */
export function sectionsOf(text: string): string[] {
  return [...proseOf(text).matchAll(/^## +(.+)$/gm)].map(([, heading = ""]) => plain(heading));
}

/** The rows of all tables whose first column has this head, each as its cells without backticks. */
export function rowsOf(text: string, firstHead: string): string[][] {
  const rows: string[][] = [];
  let inside = false;
  for (const line of proseOf(text).split("\n")) {
    const cells = cellsOf(line);
    if (!cells) inside = false;
    else if (inside) rows.push(cells);
    else inside = cells[0] === firstHead;
  }
  return rows.filter(([first = ""]) => !/^:?-+:?$/.test(first));
}

function cellsOf(line: string): string[] | undefined {
  return line.startsWith("|") ? rawCellsOf(line).map(plain) : undefined;
}

/** The cells of a table's line, with backticks and spaces. */
export const rawCellsOf = (line: string): string[] =>
  line
    .replace(/\|\s*$/, "")
    .slice(1)
    .split(/(?<!\\)\|/);

const plain = (text: string) => text.replaceAll("`", "").trim();
