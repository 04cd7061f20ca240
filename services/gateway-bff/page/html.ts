/** The HTML of the page at `/`. Every value from outside is escaped. */
import type { Language } from "../language/accept-language.ts";
import { texts } from "./texts.ts";

export interface PageOptions {
  readonly language: Language;
  /** Whether to link to the API reference. */
  readonly apiDocs: boolean;
}

export function pageHtml({ language, apiDocs }: PageOptions): string {
  const t = texts[language];
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${t.title}</title>
<link rel="stylesheet" href="/page/page.css">
<script type="module" src="/page/page.js"></script>
</head>
<body data-texts="${escapeHtml(JSON.stringify(t))}">
<header><h1>${t.title}</h1><p>${t.tagline}</p></header>
<main id="session"><noscript>${t.needsScript} <a href="/login">${t.logIn}</a></noscript></main>
${apiDocs ? `<footer><p><a href="/docs">${t.reference}</a></p></footer>` : ""}
</body>
</html>
`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
