/** The HTML around a page: navigation, search, languages, contents. */
import { navigation, type Page, translationOf } from "./pages.ts";
import { escapeHtml, type Rendered, relativePath } from "./render.ts";

const texts = {
  en: { search: "Search", contents: "On this page", menu: "Menu", theme: "Dark or light", other: "日本語" },
  ja: { search: "検索", contents: "このページ", menu: "メニュー", theme: "ダーク・ライト", other: "English" },
} as const;

// Nothing is loaded from elsewhere; the browser enforces it. Diagrams and the API reference write styles into the page.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:";

export interface LayoutPage extends Pick<Page, "path" | "language" | "title" | "source"> {
  readonly rendered: Pick<Rendered, "html" | "headings" | "hasDiagram">;
}

export function layout(page: LayoutPage, pages: readonly Page[]): string {
  const { language, rendered } = page;
  const t = texts[language];
  const to = (path: string) => relativePath(page.path, path);
  const home = language === "ja" ? "index.ja.html" : "index.html";
  const translation = translationOf(page, pages);
  const other = translation?.path ?? (language === "ja" ? "index.html" : "index.ja.html");
  const script = (name: string) => `<script defer src="${to(`assets/${name}`)}"></script>`;
  return `<!doctype html>
<html lang="${language}" data-root="${relativePath(page.path, "index.html").replace(/index\.html$/, "")}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escapeHtml(page.title)} · Todoke</title>
<link rel="stylesheet" href="${to("assets/site.css")}">
<script src="${to("assets/theme.js")}"></script>
${["minisearch.js", "search-terms.js", "site.js", ...(rendered.hasDiagram ? ["mermaid.js", "diagrams.js"] : [])].map(script).join("\n")}
</head>
<body>
<header><button id="menu" type="button" aria-label="${t.menu}">☰</button><a class="home" href="${to(home)}">Todoke</a>
<div class="search"><input id="search" type="search" placeholder="${t.search}" aria-label="${t.search}" autocomplete="off"><div id="results" class="results" role="listbox" hidden></div></div>
<a class="language" href="${to(other)}" hreflang="${language === "ja" ? "en" : "ja"}">${t.other}</a><button id="theme" type="button" aria-label="${t.theme}">◐</button></header>
<div class="columns">
<nav>${navigation(pages, language)
    .map((section) => navigationSection(section, page))
    .join("\n")}</nav>
<main><article>${rendered.html}</article></main>
${contents(rendered.headings, t.contents)}
</div>
</body>
</html>
`;
}

function navigationSection({ title, pages }: ReturnType<typeof navigation>[number], page: LayoutPage): string {
  const isOpen = pages.length < 12 || pages.some(({ path }) => path === page.path);
  const items = pages.map(({ path, title: name }) => {
    const current = path === page.path ? ' aria-current="page"' : "";
    return `<li><a href="${relativePath(page.path, path)}"${current}>${escapeHtml(shortTitle(name))}</a></li>`;
  });
  return `<details${isOpen ? " open" : ""}><summary>${title}</summary><ul>${items.join("")}</ul></details>`;
}

const shortTitle = (title: string): string => title.replace(/^@todoke\//, "");

function contents(headings: Rendered["headings"], title: string): string {
  const shown = headings.filter(({ level }) => level === 2 || level === 3);
  if (shown.length < 3) return "";
  const items = shown.map(
    ({ anchor, text, level }) => `<li class="level${level}"><a href="#${anchor}">${escapeHtml(text)}</a></li>`,
  );
  return `<aside><strong>${title}</strong><ul>${items.join("")}</ul></aside>`;
}
