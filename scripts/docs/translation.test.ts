import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { linksOf } from "./markdown.ts";
import { translatedPages } from "./translated-pages.ts";
import { differencesOf, withBlocksOf } from "./translation.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

test("every page in docs/ja is compared with its original", () => {
  const found = globSync("**/*.md", { cwd: join(root, "docs/ja") }).map((path) => `docs/ja/${path}`);
  expect(translatedPages.map(({ japanese }) => japanese).sort()).toEqual(["README.ja.md", ...found].sort());
});

for (const { english, japanese } of translatedPages)
  test(`${japanese} has the headings, code blocks and tables of ${english}`, () => {
    expect(differencesOf(read(english), read(japanese)), "`npm run docs:ja` copies code blocks").toEqual([]);
  });

test("an English page and its translation link each other", () => {
  const links = (from: string, to: string) =>
    linksOf(read(from)).some(({ target }) => target === relative(dirname(from), to));
  const unlinked = translatedPages.flatMap(({ english, japanese }) => [
    ...(links(english, japanese) ? [] : [`${english} does not link ${japanese}`]),
    ...(links(japanese, english) ? [] : [`${japanese} does not link ${english}`]),
  ]);
  expect(unlinked).toEqual([]);
});

const page = `# Points

Set \`A\`, then \`B\`.

\`\`\`sh
curl a
\`\`\`

| name | meaning |
|---|---|
| \`a\` | see \`b\` and \`c\` |
| \`d\` | |
`;

test("code blocks can be copied from the original, if there are as many", () => {
  expect(withBlocksOf(page, page.replace("curl a", "curl b"))).toBe(page);
  const withPatterns = page.replace("curl a", () => "echo $& $1");
  expect(withBlocksOf(withPatterns, page)).toBe(withPatterns);
  expect(withBlocksOf(page, `${page}\n\`\`\`sh\ncurl c\n\`\`\`\n`)).toBeUndefined();
});

test("a translation may change words and the order of code within a cell", () => {
  const translated = page.replace("Points", "ポイント").replace("see `b` and `c`", "`c`と`b`を参照");
  expect(differencesOf(page, translated)).toEqual([]);
});

test("the difference names the block, row or section and both lines", () => {
  expect(differencesOf(page, page.replace("curl a", "curl b"))).toEqual([
    'code block 1: expected "curl a", found "curl b" (line 5 of the original, 5 of the translation)',
  ]);
  const long = "x".repeat(200);
  expect(differencesOf(page.replace("curl a", `${long}a`), page.replace("curl a", `${long}bc`))).toEqual([
    `code block 1: expected "${"x".repeat(20)}a", found "${"x".repeat(20)}bc" (line 5 of the original, 5 of the translation)`,
  ]);
  expect(differencesOf(page, `\n${page.replace("`c`", "`x`")}`)).toEqual([
    "table 1, row 1: expected | `a` | `b` `c` |, found | `a` | `b` `x` | (line 11 of the original, 12 of the translation)",
  ]);
  expect(differencesOf(page, page.replace("| `d` | |\n", ""))).toEqual([
    "table 1, row 2: expected | `d` |  |, found no row (line 12 of the original, ? of the translation)",
  ]);
  expect(differencesOf(page, page.replace("then `B`", "then C"))).toEqual([
    'text below "# Points": misses `B` (line 1 of the original, 1 of the translation)',
  ]);
  expect(differencesOf(page, page.replace("# Points", "## Points"))).toEqual([
    '1 headings, translated 1: "# Points" became "## Points" (line 1 of the original, 1 of the translation)',
  ]);
  const withSection = page.replace("| name", "## Keys\n\n## Times\n\n```sh\ncurl t\n```\n\n| name");
  expect(differencesOf(withSection, withSection.replace("## Keys\n\n", ""))).toEqual([
    '3 headings, translated 2: "## Keys" became "## Times" (line 9 of the original, 9 of the translation)',
  ]);
  expect(differencesOf(page, page.replace(/```sh\n[^`]*```\n/, ""))).toEqual([
    "code block 1: is not translated (line 5 of the original, ? of the translation)",
  ]);
  expect(differencesOf(page, page.replace(/\|[\s\S]*/, ""))).toEqual(["1 tables, translated 0: lines 9 and lines "]);
});
