/** The HTML of the page at `/`. Every value from outside is escaped. */
import type { Language } from "../language/accept-language.ts";
import { type Texts, texts } from "./texts.ts";

export interface ServiceState {
  readonly name: string;
  /** Empty if it is not public. */
  readonly url: string;
  readonly state: "ready" | "notReady" | "away";
}

export interface PageOptions {
  readonly language: Language;
  /** Whether to link to the API reference. */
  readonly apiDocs: boolean;
}

export function pageHtml(services: readonly ServiceState[], { language, apiDocs }: PageOptions): string {
  const t = texts[language];
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${t.title}</title>
<link rel="stylesheet" href="/page.css">
<script type="module" src="/page.js"></script>
</head>
<body data-texts="${escapeHtml(JSON.stringify(t))}">
<header><h1>${t.title}</h1><p>${t.tagline}</p></header>
<main>
<section aria-labelledby="you"><h2 id="you">${t.you}</h2>
<div id="session"><noscript>${t.needsScript} <a href="/login">${t.logIn}</a></noscript></div>
</section>
<section aria-labelledby="services"><h2 id="services">${t.services}</h2>
<table><thead><tr><th>${t.service}</th><th>${t.address}</th><th>${t.state}</th></tr></thead>
<tbody>
${services.map((service) => row(service, t)).join("\n")}
</tbody></table>
${apiDocs ? `<p><a href="/docs">${t.reference}</a></p>` : ""}
</section>
</main>
</body>
</html>
`;
}

const row = ({ name, url, state }: ServiceState, t: Texts): string =>
  `<tr><td>${escapeHtml(name)}</td><td>${escapeHtml(url)}</td><td class="${state}">${t[state]}</td></tr>`;

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
