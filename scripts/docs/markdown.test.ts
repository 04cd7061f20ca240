import { expect, test } from "vitest";
import { anchorsOf, blocksOf, linksOf, rowsOf, sectionOf, sectionsOf, shellOf } from "./markdown.ts";

const page = `# A page

See [the other](other.md#two-words), ![a picture](a.png "title") and \`[not this](one.md)\`.

## Two words, and \`more_code\`

| code | status |
|---|---|
| \`gone\` | 410 |

\`\`\`sh
# no heading, [no link](none.md)
npm run thing
\`\`\`

## Two words, and \`more_code\`

| what | status |
|---|---|
| other | 1 |

[foot]: ../foot.md
`;

test("links are found in text and references, not in code", () => {
  expect(linksOf(page)).toEqual([
    { line: 3, target: "other.md#two-words" },
    { line: 3, target: "a.png" },
    { line: 22, target: "../foot.md" },
  ]);
});

test("anchors match GitHub's, with a number for a repeated heading", () => {
  expect([...anchorsOf(page)]).toEqual(["a-page", "two-words-and-more_code", "two-words-and-more_code-1"]);
});

test("shell code is in backticks and in blocks of sh or no language", () => {
  expect(shellOf(page)).toContain("more_code");
  expect(shellOf(page)).toContain("# no heading, [no link](none.md)\nnpm run thing\n");
  expect(shellOf("```sql\nselect 1\n```\n")).toEqual([]);
  expect(blocksOf(page, "sh")).toHaveLength(1);
});

test("a table is found by its first column, a section by its heading", () => {
  expect(rowsOf(page, "code")).toEqual([["gone", "410"]]);
  expect(sectionsOf(page)).toEqual(["Two words, and more_code", "Two words, and more_code"]);
  expect(sectionOf(page, "Two words, and more_code")).toContain("410");
  expect(sectionOf(page, "Nowhere")).toBe("");
});
