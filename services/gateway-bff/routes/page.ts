/** `GET /`: the player's page, and its files. It is public and loads nothing from elsewhere; its content security policy enforces that. */
import { readFileSync } from "node:fs";
import { type HttpApp, pageHeaders, problems, publicRoute, StaticText } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { requestLanguage } from "../language/accept-language.ts";
import { pageHtml } from "../page/html.ts";

const headers = pageHeaders(["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:"], {
  referrer: "same-origin",
});

const scripts = ["page", "elements", "match", "points", "items", "inbox", "sessions"].map((name) => `${name}.js`);

export function pageRoutes(app: HttpApp, { apiDocs = true }: Pick<Deps, "apiDocs">): void {
  const files = new Map(["page.css", ...scripts].map((name) => [name, readPageFile(name)]));

  app.get("/", { ...publicRoute, schema: { hide: true } }, async (request, reply) => {
    const language = requestLanguage(request);
    return reply
      .type("text/html; charset=utf-8")
      .headers({ ...headers, "content-language": language, vary: "Accept-Language" })
      .send(pageHtml({ language, apiDocs }));
  });

  const schema = { hide: true, params: Type.Object({ name: Type.String({ maxLength: 128 }) }) };
  app.get("/page/:name", { ...publicRoute, schema }, async (request, reply) => {
    const file = files.get(request.params.name);
    if (!file) throw problems.notFound("the page has no file with this name");
    return file.send(request, reply);
  });
}

function readPageFile(name: string): StaticText {
  const type = name.endsWith(".css") ? "text/css" : "text/javascript";
  return new StaticText(readFileSync(new URL(`../page/${name}`, import.meta.url), "utf8"), `${type}; charset=utf-8`);
}
