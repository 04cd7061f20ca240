/**
 * `GET /`: the services that run here and who is logged in, for a person with a browser; and one API reference for all
 * services.
 *
 * The page loads nothing from elsewhere; its content security policy enforces that. It is public, so it shows only whether
 * a service is ready, and its address only on loopback.
 */
import { readFileSync } from "node:fs";
import { type HttpApp, pageHeaders, problems, publicRoute } from "@todoke/http";
import { Type } from "typebox";
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

/** The documents of the API reference, the gateway's own first. */
export const apiDocuments = (services: Readonly<Record<string, string>>) => [
  { title: "gateway-bff", url: "/openapi.json" },
  ...Object.keys(services).map((name) => ({ title: name, url: `/openapi/${name}.json` })),
];

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
  if (apiDocs) documentRoute(app, deps);
}

/** Serves a service's API document from here, because the reference page may load from nowhere else. */
function documentRoute(app: HttpApp, { services, isLoopback }: PageDeps): void {
  const schema = { hide: true, params: Type.Object({ service: Type.String({ maxLength: 64 }) }) };
  app.get("/openapi/:service.json", { ...publicRoute, schema }, async ({ params }, reply) => {
    const url = Object.hasOwn(services, params.service) ? services[params.service] : undefined;
    if (!url) throw problems.notFound("there is no service with this name");
    const response = await fetch(new URL("/openapi.json", url), { signal: AbortSignal.timeout(timeoutMs) }).catch(
      () => undefined,
    );
    if (!response?.ok) throw problems.unavailable(`${params.service} is unavailable`, { retryAfterSeconds: 1 });
    const document = (await response.json()) as object;
    const withServer = { ...document, ...(isLoopback && { servers: [{ url }] }) };
    return reply.type("application/json; charset=utf-8").send(JSON.stringify(withServer));
  });
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
