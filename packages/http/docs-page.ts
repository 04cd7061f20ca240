/**
 * A page to read and try an API, by Scalar. It works without the internet: the script comes from here, and its content
 * security policy lets it reach nothing else.
 */
import { hash } from "node:crypto";
import type { HttpApp } from "./app.ts";
import { everybody } from "./callers.ts";
import { pageHeaders } from "./page-headers.ts";

export interface DocsPageOptions {
  readonly title?: string;
  readonly path?: `/${string}`;
  /** The documents to show, when there are others than this app's own. */
  readonly sources?: readonly { readonly title: string; readonly url: string }[];
}

export async function docsPage(app: HttpApp, options: DocsPageOptions = {}): Promise<void> {
  const { title = "API reference", path = "/docs", sources } = options;
  // Four megabytes, wanted only by those that show the page.
  const { default: scalar } = await import("@scalar/fastify-api-reference");
  await app.register(async (page) => {
    page.addHook("onRoute", (route) => {
      route.config = { ...route.config, ...everybody.config };
    });
    page.addHook("onSend", async (_request, reply, payload) => {
      // Scalar hands its copy of the document to every site; nothing here is for the scripts of others.
      for (const name of ["access-control-allow-origin", "access-control-allow-methods"]) reply.removeHeader(name);
      if (String(reply.getHeader("content-type")).startsWith("text/html")) {
        reply.headers(headersFor(String(payload)));
      }
    });
    await page.register(scalar, {
      routePrefix: path,
      configuration: {
        ...(sources ? { sources: [...sources] } : { url: "/openapi.json" }),
        pageTitle: title,
        ...offline,
      },
    });
  });
}

/** Everything that would reach for a service of Scalar's, or offer to. */
const offline = {
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: "",
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
} as const;

/** Only the scripts of the page as we made it run: those from here, and the one line inside it by its hash. */
function headersFor(html: string): Record<string, string> {
  const inline = html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g);
  const hashes = inline.map(([, script = ""]) => `'sha256-${hash("sha256", script, "base64")}'`).toArray();
  return pageHeaders([
    `script-src 'self' ${hashes.join(" ")}`,
    "style-src 'unsafe-inline'", // Scalar writes its styles into the page.
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
  ]);
}
