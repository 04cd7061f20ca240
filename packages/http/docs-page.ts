/**
 * The API reference, by Scalar. It works without the internet: the script is served here, and the content security policy
 * allows no other origin.
 */
import { hash } from "node:crypto";
import type { RouteOptions } from "fastify";
import type { HttpApp } from "./app.ts";
import { publicRoute } from "./callers.ts";
import { pageHeaders } from "./page-headers.ts";
import { StaticText } from "./static-text.ts";

export interface DocsPageOptions {
  readonly title?: string;
  readonly path?: `/${string}`;
  /** The documents to show; this app's own by default. */
  readonly sources?: readonly { readonly title: string; readonly url: string }[];
}

export async function docsPage(app: HttpApp, options: DocsPageOptions = {}): Promise<void> {
  const { title = "API reference", path = "/docs", sources } = options;
  // Four megabytes, loaded only by processes that serve the page. Browsers get them compressed, and once.
  const { default: scalar } = await import("@scalar/fastify-api-reference");
  await app.register(async (page) => {
    page.addHook("onRoute", (route) => {
      route.config = { ...route.config, ...publicRoute.config };
      if (route.url === `${path}/${scriptPath}`) serveByHash(route);
    });
    page.addHook("onSend", async (_request, reply, payload) => {
      // Scalar allows every site to read its copy of the document; we allow none.
      for (const name of ["access-control-allow-origin", "access-control-allow-methods"]) reply.removeHeader(name);
      if (String(reply.getHeader("content-type")).startsWith("text/html")) {
        const html = String(payload).replace(`"${scriptPath}"`, `"${hashedPath()}"`);
        reply.headers(headersFor(html));
        return html;
      }
      return payload;
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

/** Where Scalar serves its script, and where our page loads it from. */
const scriptPath = "js/scalar.js";
const hashedPath = () => scriptPath.replace(".js", `.${script?.hash}.js`);

/** Shared by every app of the process. */
let script: StaticText | undefined;

/** Scalar sends the whole script at every visit: a path with its hash lets browsers cache it. */
function serveByHash(route: RouteOptions): void {
  script ??= new StaticText(textSentBy(route), "application/javascript; charset=utf-8");
  route.url = route.url.replace(scriptPath, hashedPath());
  route.handler = script.send.bind(script);
}

function textSentBy({ handler }: RouteOptions): string {
  let sent: unknown;
  const reply = {
    header: () => reply,
    send: (text: unknown) => {
      sent = text;
    },
  };
  (handler as unknown as (request: undefined, reply: object) => void)(undefined, reply);
  if (typeof sent !== "string") throw new Error("the script of the API reference is not where Scalar had it");
  return sent;
}

/** Turns off everything that uses or offers a service of Scalar. */
const offline = {
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: "",
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  // The document has samples of its own.
  hiddenClients: true,
  showDeveloperTools: "never",
} as const;

/** Only our scripts run: those served here, and the inline one by its hash. */
function headersFor(html: string): Record<string, string> {
  const inline = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g)];
  const hashes = inline.map(([, script = ""]) => `'sha256-${hash("sha256", script, "base64")}'`);
  return pageHeaders([
    `script-src 'self' ${hashes.join(" ")}`,
    "style-src 'unsafe-inline'", // Scalar writes its styles into the page.
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
  ]);
}
