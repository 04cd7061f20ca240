/** Renders the Markdown of a page, collects its sections for the search, and checks its links. */
import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { anchorsOf } from "../markdown.ts";
import type { Page } from "./pages.ts";
import { createMarkdown, highlight, type Token } from "./tools.ts";

export interface Rendered {
  readonly html: string;
  readonly sections: readonly { readonly anchor: string; readonly heading: string; readonly text: string }[];
  readonly headings: readonly { readonly anchor: string; readonly text: string; readonly level: number }[];
  readonly hasDiagram: boolean;
  readonly faults: readonly string[];
  /** Images of the repository that the page shows. */
  readonly images: readonly string[];
}

export interface Site {
  readonly root: string;
  /** By source. */
  readonly pages: ReadonlyMap<string, Page>;
}

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[character] ?? "");

export function renderPage(page: Page, site: Site): Rendered {
  const markdown = createMarkdown({ html: true, linkify: false });
  const faults: string[] = [];
  const images: string[] = [];
  let hasDiagram = false;
  markdown.renderer.rules.fence = (tokens, index) => {
    const { info = "", content = "" } = tokens[index] ?? {};
    if (info.trim() !== "mermaid") return codeBlock(content, info.trim());
    hasDiagram = true;
    return `<pre class="mermaid">${escapeHtml(content)}</pre>\n`;
  };
  const tokens = markdown.parse(page.text, {});
  const anchors = [...anchorsOf(page.text)];
  const headings: { anchor: string; text: string; level: number }[] = [];
  const sections = [{ anchor: "", heading: page.title, text: "" }];
  tokens.forEach((token, index) => {
    const inline = tokens[index + 1];
    if (/^h\d$/.test(token.tag) && inline?.children && tokens[index + 2]?.tag === token.tag) {
      const anchor = anchors[headings.length] ?? "";
      token.attrSet("id", anchor);
      const text = plainText(inline);
      headings.push({ anchor, text, level: Number(token.tag[1]) });
      sections.push({ anchor, heading: text, text: "" });
    } else if (token.content && token.info !== "mermaid") {
      const last = sections.at(-1);
      if (last) last.text += ` ${token.children ? plainText(token) : token.content}`;
    }
    for (const child of token.children ?? []) {
      const name = child.tag === "img" ? "src" : "href";
      const target = child.attrGet(name);
      if (target === null) continue;
      const link = resolveLink(target, page, site);
      if (link.fault) faults.push(`${page.source} links to ${target}: ${link.fault}`);
      if (child.tag === "img" && link.file) images.push(link.file);
      child.attrSet(name, link.href);
      if (link.isSource) child.attrSet("class", "source");
    }
  });
  const html = markdown.renderer
    .render(tokens, markdown.options, {})
    .replaceAll("<table>", '<div class="table"><table>')
    .replaceAll("</table>", "</table></div>");
  return { html, sections: sections.filter(({ text }) => text !== ""), headings, hasDiagram, faults, images };
}

const languages: Readonly<Record<string, string>> = { sh: "bash", console: "bash", mjs: "js", promql: "", text: "" };

function codeBlock(code: string, info: string): string {
  const language = languages[info] ?? info;
  const html = (language && highlight(code, language)) || escapeHtml(code);
  return `<pre class="code"><code>${html}</code></pre>\n`;
}

const plainText = (token: Token): string =>
  (token.children ?? []).map(({ content, tag }) => (tag === "br" ? " " : content)).join("");

interface ResolvedLink {
  readonly href: string;
  readonly fault?: string;
  readonly file?: string;
  /** It leads to a file of the repository that is no page. */
  readonly isSource?: boolean;
}

/** A link to a page leads to that page; one to another file of the repository leads nowhere, and shows its path. */
function resolveLink(target: string, page: Page, { root, pages }: Site): ResolvedLink {
  if (/^[a-z]+:/.test(target)) return { href: target };
  const [path = "", anchor] = target.split("#");
  const file =
    path === "" ? page.source : posix.normalize(posix.join(posix.dirname(page.source), decodeURIComponent(path)));
  const linked = file === page.source ? page : (pages.get(file) ?? pages.get(posix.join(file, "README.md")));
  if (!linked) {
    if (!existsSync(join(root, file))) return { href: "#", fault: "there is no such file" };
    return /\.(svg|png)$/.test(file) ? { href: relativePath(page.path, file), file } : { href: "#", isSource: true };
  }
  const isKnown = anchor === undefined || anchorsOf(linked.text).has(decodeURIComponent(anchor));
  const href = `${path === "" ? "" : relativePath(page.path, linked.path)}${anchor === undefined ? "" : `#${anchor}`}`;
  return { href, ...(!isKnown && { fault: "the page has no such heading" }) };
}

export const relativePath = (from: string, to: string): string =>
  posix.relative(posix.dirname(from), to) || posix.basename(to);
