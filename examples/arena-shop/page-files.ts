/**
 * The page in the browser: /shop/, its files, and the client. Without a build: a working copy serves TypeScript with its types
 * removed, a published package the JavaScript that it has. A real page would come from a bundler.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface PageFile {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const types: Readonly<Record<string, string>> = {
  ".ts": "text/javascript",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

/** "ts" in a working copy, "js" in a published package. */
const script = extname(import.meta.url).slice(1);

/** By their paths. */
export function readPageFiles(): ReadonlyMap<string, PageFile> {
  const client = fileURLToPath(new URL(".", import.meta.resolve("@todoke/client")));
  const page = fileURLToPath(new URL("./page/", import.meta.url));
  const imports = JSON.stringify({ imports: { "@todoke/client": `/shop/client/index.${script}` } });
  const scripts = `<script type="importmap">${imports}</script><script type="module" src="/shop/page/main.${script}"></script>`;
  const html = readFileSync(join(page, "index.html"), "utf8").replace("<!-- scripts -->", scripts);
  return new Map([
    ["/shop/", { headers: htmlHeaders(imports), body: html }],
    ...readFolder(page, "/shop/page/"),
    ...readFolder(client, "/shop/client/"),
    ...readFolder(join(client, "gen"), "/shop/client/gen/"),
  ]);
}

function readFolder(folder: string, path: string): [string, PageFile][] {
  const names = readdirSync(folder).filter((name) => extname(name) in types && !/\.test\.|\.d\.ts$/.test(name));
  return names.map((name) => {
    const text = readFileSync(join(folder, name), "utf8");
    const headers = { ...safeHeaders, "content-type": `${types[extname(name)]}; charset=utf-8` };
    return [path + name, { headers, body: name.endsWith(".ts") ? stripTypeScriptTypes(text) : text }];
  });
}

const safeHeaders = {
  "cache-control": "no-cache",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};

/** Nothing from elsewhere, nothing inline but the import map, no frames, and no script may write markup. */
function htmlHeaders(imports: string): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'sha256-${createHash("sha256").update(imports).digest("base64")}'`,
    ...["style-src", "connect-src", "img-src"].map((name) => `${name} 'self'`),
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "require-trusted-types-for 'script'; trusted-types 'none'",
  ].join("; ");
  return {
    ...safeHeaders,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "referrer-policy": "same-origin",
  };
}
