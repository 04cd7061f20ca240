/** The documentation site, built without services and opened as files in a real browser. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowser, openBrowser } from "../../../flows/browser.ts";
import { buildSite } from "./build.ts";
import { readPages, toPage } from "./pages.ts";
import { renderPage } from "./render.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const out = mkdtempSync(join(tmpdir(), "todoke-docs-"));
const apiDocument = {
  openapi: "3.1.0",
  info: { title: "Todoke", version: "1", description: "Of a test." },
  paths: {},
};

let faults: readonly string[];

beforeAll(async () => {
  ({ faults } = await buildSite({ root, out, apiDocument }));
});
afterAll(() => rmSync(out, { recursive: true }));

const files = () => readdirSync(out, { recursive: true, encoding: "utf8" });

test("every page of the repository is on the site, and every link of theirs leads somewhere", () => {
  const pages = readPages(root);
  expect(pages.length).toBeGreaterThan(100);
  expect(pages.filter(({ path }) => !existsSync(join(out, path)))).toEqual([]);
  expect(faults).toEqual([]);
});

test("links between the built pages lead to files and headings that exist", () => {
  const html = files().filter((file) => file.endsWith(".html"));
  const read = (file: string) => readFileSync(join(out, file), "utf8");
  const broken = html.flatMap((file) =>
    [...read(file).matchAll(/(?:href|src)="(?![a-z]+:)([^"#]*)(?:#([^"]*))?"/g)].flatMap(([, path = "", anchor]) => {
      const target = path === "" ? file : join(file, "..", decodeURIComponent(path));
      if (!existsSync(join(out, target))) return [`${file} -> ${path}`];
      return !anchor || read(target).includes(` id="${decodeURIComponent(anchor)}"`)
        ? []
        : [`${file} -> ${path}#${anchor}`];
    }),
  );
  expect(html.length).toBeGreaterThan(100);
  expect(broken).toEqual([]);
});

test("nothing is loaded from elsewhere", () => {
  const html = files().filter((file) => file.endsWith(".html"));
  const loaded = html.flatMap((file) => [
    ...readFileSync(join(out, file), "utf8").matchAll(
      /<(?:script|img|link|iframe)[^>]*(?:src|href)="(?:https?:)?\/\/[^"]*"/g,
    ),
  ]);
  expect(loaded).toEqual([]);
  for (const file of html) expect(readFileSync(join(out, file), "utf8")).toContain("default-src 'self'");
});

test("a link to a file or a heading that does not exist is a fault", () => {
  const pages = new Map(readPages(root).map((page) => [page.source, page]));
  const page = toPage(
    "docs/test.md",
    "# T\n\n[a](nothing.md), [b](slo.md#nothing), [c](slo.md), [d](#t), [e](../package.json)\n",
  );
  expect(renderPage(page, { root, pages }).faults).toEqual([
    "docs/test.md links to nothing.md: there is no such file",
    "docs/test.md links to slo.md#nothing: the page has no such heading",
  ]);
});

const executable = await findBrowser();

test.skipIf(!executable)(
  "diagrams are drawn, the search finds English and Japanese, and pages fit a phone",
  async () => {
    await using browser = await openBrowser(executable ?? "");
    const person = await browser.person();
    const page = await person.newPage();
    const errors: string[] = [];
    page.on("pageerror", (error) => void errors.push(String(error)));
    const open = (path: string) => page.goto(pathToFileURL(join(out, path)).href);

    await open("docs/states.html");
    await page.locator('html[data-diagrams="drawn"]').waitFor({ state: "attached" });
    const diagrams = await page.locator("pre.mermaid").count();
    expect(diagrams).toBeGreaterThan(5);
    expect(await page.locator("pre.mermaid svg[id]").count()).toBe(diagrams);

    await page.fill("#search", "insufficient points");
    await page.locator("#results a").first().waitFor();
    expect(await page.locator("#results a").allTextContents()).toContainEqual(expect.stringContaining("Points"));

    await page.setViewportSize({ width: 390, height: 844 });
    await open("docs/ja/architecture.html");
    await page.fill("#search", "冪等");
    await page.locator("#results a").first().waitFor();
    await page.locator("#results a").first().click();
    await page.locator('html[lang="ja"]').waitFor({ state: "attached" });
    const width = await page.evaluate("document.documentElement.scrollWidth");
    expect(width).toBe(390);

    await open("api.html");
    await page.getByText("Of a test.").first().waitFor();
    expect(errors).toEqual([]);
  },
);
