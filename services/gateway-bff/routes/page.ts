/**
 * `GET /`: the services that run here and who is logged in, for a person with a browser.
 *
 * The page loads nothing from elsewhere; its content security policy enforces that. It is public, so it shows only whether
 * a service is ready, and its address only on loopback.
 */
import { readFileSync } from "node:fs";
import { type HttpApp, pageHeaders, publicRoute } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { requestLanguage } from "../language/accept-language.ts";
import { pageHtml, type ServiceState } from "../page/html.ts";

export interface PageDeps extends Pick<Deps, "origin" | "isLoopback" | "apiDocs"> {
  /** The address of each service, by its name, without the gateway. */
  readonly services: Readonly<Record<string, string>>;
}

const headers = pageHeaders(["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:"], {
  referrer: "same-origin",
});

const files = [
  ["/page.css", "text/css"],
  ["/page.js", "text/javascript"],
] as const;

export function pageRoutes(app: HttpApp, deps: PageDeps): void {
  const { apiDocs = true } = deps;
  const getStates = cached(() => Promise.all(Object.entries(deps.services).map(readState)));
  const hidden = { ...publicRoute, schema: { hide: true } };

  app.get("/", hidden, async (request, reply) => {
    const gateway: ServiceState = { name: "gateway-bff", url: deps.origin, state: "ready" };
    const language = requestLanguage(request);
    const services = (await getStates()).map((service) => (deps.isLoopback ? service : { ...service, url: "" }));
    return reply
      .type("text/html; charset=utf-8")
      .headers({ ...headers, "content-language": language, vary: "Accept-Language" })
      .send(pageHtml([gateway, ...services], { language, apiDocs }));
  });
  for (const [path, type] of files) {
    const body = readFileSync(new URL(`../page${path}`, import.meta.url), "utf8");
    app.get(path, hidden, (_request, reply) => reply.type(`${type}; charset=utf-8`).send(body));
  }
}

const timeoutMs = 1_000;

async function readState([name, url]: readonly [string, string]): Promise<ServiceState> {
  try {
    const { ok } = await fetch(new URL("/readyz", url), { signal: AbortSignal.timeout(timeoutMs) });
    return { name, url, state: ok ? "ready" : "notReady" };
  } catch {
    return { name, url, state: "away" };
  }
}

const cacheMs = 2_000;

/** Many viewers of the page cause one read of the states. */
function cached<T>(read: () => Promise<T>): () => Promise<T> {
  let last: { readonly value: Promise<T>; readonly at: number } | undefined;
  return () => {
    if (!last || performance.now() - last.at > cacheMs) last = { value: read(), at: performance.now() };
    return last.value;
  };
}
