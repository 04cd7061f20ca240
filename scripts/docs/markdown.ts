/** Reads Markdown, as far as our pages use it: headings, links, tables and code. */

/** The page without fenced blocks; line numbers stay the same. */
function proseOf(text: string): string {
  return text.replace(fence, (block) => "\n".repeat(block.split("\n").length - 1));
}

const fence = /^([ \t]*)(`{3,})([^\n]*)\n([\s\S]*?)^[ \t]*\2[ \t]*$/gm;

/** The fenced blocks of one language: "sql", "mermaid". */
export function blocksOf(text: string, language: string): string[] {
  const blocks = [...text.matchAll(fence)].filter(([, , , info = ""]) => info.trim() === language);
  return blocks.map(([, , , , body = ""]) => body);
}

/** Shell code: inline code, and blocks of "sh" or of no language. */
export function shellOf(text: string): string[] {
  const inline = [...proseOf(text).matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
  return [...inline, ...blocksOf(text, "sh"), ...blocksOf(text, "")];
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
  if (!line.startsWith("|")) return undefined;
  return line
    .replace(/\|\s*$/, "")
    .slice(1)
    .split(/(?<!\\)\|/)
    .map(plain);
}

const plain = (text: string) => text.replaceAll("`", "").trim();
