import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { readResult, renderPage as renderPeersPage } from "./peers/page.ts";
import { readResults, renderPage } from "./report.ts";

const readDoc = (path: string) => readFile(new URL(`../docs/${path}`, import.meta.url), "utf8");

test("docs/performance.md is the page that bench/results.json generates", async () => {
  expect(await readDoc("performance.md")).toBe(renderPage(await readResults()));
});

test("docs/performance/peers.md is the page that bench/peers/results.json generates", async () => {
  expect(await readDoc("performance/peers.md")).toBe(renderPeersPage(readResult()));
});
