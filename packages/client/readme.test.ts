import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as snippets from "./testing/readme.ts";

const read = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");
/** Without line breaks and indentation, which differ inside a function. */
const flat = (text: string) =>
  text
    .replace(/\s+/g, " ")
    .replace(/, ([)}\]])/g, " $1")
    .replace(/([([{]) /g, "$1")
    .replace(/ ([)\]}])/g, "$1")
    .trim();

test("every snippet of the README is compiled", () => {
  const blocks = [...read("README.md").matchAll(/```ts\n(.*?)```/gs)].map(([, block = ""]) => flat(block));
  expect(blocks).toHaveLength(Object.keys(snippets).length);
  const compiled = flat(read("testing/readme.ts"));
  for (const block of blocks) expect(compiled).toContain(block);
});
