/** The pages of the site: which Markdown files it has, where each is, and how they are grouped. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";

export interface Page {
  /** Its Markdown file: "docs/guides/points.md". */
  readonly source: string;
  /** Where it is on the site: "docs/guides/points.html". */
  readonly path: string;
  readonly language: "en" | "ja";
  readonly title: string;
  readonly text: string;
}

/** Every Markdown file of the repository, but no copies of others. */
export function readPages(root: string): Page[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
    cwd: root,
    encoding: "utf8",
  });
  const files = listed.split("\n").filter((file) => file !== "" && !file.startsWith("fixtures/"));
  return files.map((source) => toPage(source, readFileSync(join(root, source), "utf8")));
}

export function toPage(source: string, text: string): Page {
  const language = /^docs\/ja\/|\.ja\.md$/.test(source) ? "ja" : "en";
  const heading = /^# +(.+)$/m.exec(text)?.[1] ?? posix.basename(source, ".md");
  return { source, path: pathOf(source), language, title: heading.replace(/[`*]/g, ""), text };
}

/** A README is the index of its folder. */
const pathOf = (source: string): string =>
  source
    .replace(/(^|\/)README\.md$/, "$1index.html")
    .replace(/(^|\/)README\.(\w+)\.md$/, "$1index.$2.html")
    .replace(/\.md$/, ".html");

export interface Section {
  readonly title: string;
  readonly pages: readonly Pick<Page, "path" | "title" | "source">[];
}

/** Made by the build, not from a Markdown file. */
const referencePages = [
  { path: "api.html", title: "HTTP API", source: "" },
  { path: "events.html", title: "Events", source: "" },
] as const;

const titles = {
  en: {
    start: "Start",
    concepts: "Concepts",
    guides: "Guides",
    reference: "Reference",
    services: "Services",
    packages: "Packages",
    decisions: "Decisions",
  },
  ja: {
    start: "はじめに",
    concepts: "設計",
    guides: "ガイド",
    reference: "リファレンス",
    services: "",
    packages: "",
    decisions: "",
  },
} as const;

const references = ["docs/errors.md", "docs/telemetry.md", "docs/states.md", "docs/glossary.md"];

/** The navigation of a language, in the order of its sections. */
export function navigation(pages: readonly Page[], language: Page["language"]): Section[] {
  const own = pages.filter((page) => page.language === language);
  const where = (pattern: RegExp) => own.filter(({ source }) => pattern.test(source) && !references.includes(source));
  const named = titles[language];
  const sections = [
    { title: named.start, pages: where(/^[^/]+\.md$/).toSorted(byRank) },
    { title: named.reference, pages: [...referencePages, ...own.filter(({ source }) => references.includes(source))] },
    { title: named.concepts, pages: where(/^docs\/(ja\/)?[^/]+\.md$/) },
    { title: named.guides, pages: where(/^docs\/(ja\/)?(guides|apis|architecture|observability|performance|model)\//) },
    { title: named.services, pages: where(/^services\//) },
    { title: named.packages, pages: where(/^(packages|deploy|examples|console|chaos|bench)\//) },
    { title: named.decisions, pages: where(/^docs\/adr\//).toSorted((a, b) => (a.path < b.path ? 1 : -1)) },
  ];
  return sections.filter((section) => section.pages.length > 0);
}

/** The README is first. */
const byRank = (a: Page, b: Page): number => Number(b.path.startsWith("index")) - Number(a.path.startsWith("index"));

/** The same page in the other language. */
export function translationOf(page: Pick<Page, "language" | "source">, pages: readonly Page[]): Page | undefined {
  const other =
    page.language === "ja"
      ? page.source.replace("docs/ja/", "docs/").replace(".ja.md", ".md")
      : page.source.replace(/^docs\//, "docs/ja/").replace(/^README\.md$/, "README.ja.md");
  return other === page.source ? undefined : pages.find(({ source }) => source === other);
}
