/** The programs that only the site needs. They are in tools/, so that `npm ci` does not fetch them. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const tools = createRequire(new URL("../../../tools/package.json", import.meta.url));

export interface Token {
  readonly tag: string;
  readonly info: string;
  readonly content: string;
  readonly children: readonly Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

type Rule = (tokens: readonly Token[], index: number) => string;

export interface Markdown {
  readonly renderer: {
    readonly rules: Record<string, Rule | undefined>;
    render(tokens: readonly Token[], options: object, env: object): string;
  };
  readonly options: object;
  parse(text: string, env: object): Token[];
}

interface Highlighter {
  getLanguage(name: string): unknown;
  highlight(code: string, options: { readonly language: string }): { readonly value: string };
}

interface SearchIndex {
  addAll(documents: readonly object[]): void;
}

const markdownIt: new (options: object) => Markdown = tools("markdown-it");
const MiniSearch: new (options: object) => SearchIndex = tools("minisearch");
const highlighter: Highlighter = tools("highlight.js/lib/common");

export const createMarkdown = (options: object): Markdown => new markdownIt(options);

export const createSearchIndex = (options: object): SearchIndex => new MiniSearch(options);

/** HTML of the code; undefined for a language that it does not know. */
export const highlight = (code: string, language: string): string | undefined =>
  highlighter.getLanguage(language) ? highlighter.highlight(code, { language }).value : undefined;

const fileIn = (name: string, path: string): string =>
  readFileSync(new URL(`../../../tools/node_modules/${name}/${path}`, import.meta.url), "utf8");

/** Scripts that the pages load. */
export const scripts = (): Readonly<Record<string, string>> => ({
  "minisearch.js": fileIn("minisearch", "dist/umd/index.js"),
  "mermaid.js": fileIn("@mermaid-js/tiny", "dist/mermaid.tiny.js"),
});
