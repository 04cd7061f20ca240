/** Builds the site: pages, reference, search, assets. Returns the faults that it found, a sentence each. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { asyncApiText } from "@todoke/contracts/asyncapi";
import { apiAssets, apiPage } from "./api-reference.ts";
import { eventsMarkdown } from "./events-page.ts";
import { layout } from "./layout.ts";
import { type Page, readPages, toPage } from "./pages.ts";
import { type Rendered, renderPage } from "./render.ts";
import { searchIndex, searchTermsScript } from "./search-index.ts";
import { scripts } from "./tools.ts";

export interface SiteOptions {
  readonly root: string;
  readonly out: string;
  /** The merged API document. */
  readonly apiDocument: object;
}

const assets = ["site.css", "site.js", "theme.js", "diagrams.js", "api.js"] as const;

export async function buildSite({ root, out, apiDocument }: SiteOptions) {
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), text);
  };
  const pages = readPages(root);
  const events: Page = { ...toPage("events.md", eventsMarkdown(JSON.parse(asyncApiText()))), source: "" };
  const bySource = new Map(pages.map((page) => [page.source, page]));
  const rendered = [...pages, events].map((page) => ({
    ...page,
    rendered: renderPage(page, { root, pages: bySource }),
  }));
  for (const page of rendered) write(page.path, layout(page, pages));
  for (const image of rendered.flatMap((page) => page.rendered.images)) {
    mkdirSync(dirname(join(out, image)), { recursive: true });
    cpSync(join(root, image), join(out, image));
  }
  write("api.html", apiPage());
  write("openapi.json", JSON.stringify(apiDocument));
  write("asyncapi.json", asyncApiText());
  for (const language of ["en", "ja"] as const) {
    const own = rendered.filter((page) => page.language === language).map(toSearchSource);
    // A script, not JSON: a page that was opened as a file may not fetch.
    write(`assets/search-${language}.js`, `window.searchData = ${searchIndex(own)};\n`);
  }
  for (const name of assets)
    write(`assets/${name}`, readFileSync(new URL(`./assets/${name}`, import.meta.url), "utf8"));
  write("assets/search-terms.js", searchTermsScript());
  for (const [name, text] of Object.entries({ ...scripts(), ...(await apiAssets(apiDocument)) }))
    write(`assets/${name}`, text);
  return { pages: rendered.length + 1, faults: rendered.flatMap((page) => page.rendered.faults) };
}

const toSearchSource = ({ path, title, rendered }: Page & { readonly rendered: Rendered }) => ({
  path,
  title,
  sections: rendered.sections,
});
