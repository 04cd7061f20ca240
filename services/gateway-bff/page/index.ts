/**
 * `GET /`: what runs here and who is logged in, for a person with a browser; and one API reference for all services.
 *
 * The page loads nothing from elsewhere, and its content security policy sees to it. It is for everybody, so it tells of a
 * service no more than whether it is ready, and where it is only to those who sit at the same machine.
 */
import { readFileSync } from "node:fs";
import { everybody, type HttpApp, pageHeaders, problems } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { pageHtml, type ServiceState } from "./html.ts";
import type { Language } from "./texts.ts";

export interface PageDeps {
  /** Where each service is, by its name; the gateway itself is not among them. */
  readonly services: Readonly<Record<string, string>>;
  /** As players see it. */
  readonly origin: string;
  /** The gateway is reached on this machine only. */
  readonly isLoopback: boolean;
  /** Whether API documents are served: yes, unless set to false. */
  readonly apiDocs?: boolean;
  readonly languageOf: (request: FastifyRequest) => Language;
}

const file = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");

const headers = pageHeaders(["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:"], {
  referrer: "same-origin",
});

/** The documents of the API reference: the gateway's own first. */
export const documentsOf = (services: Readonly<Record<string, string>>) => [
  { title: "gateway-bff", url: "/openapi.json" },
  ...Object.keys(services).map((name) => ({ title: name, url: `/openapi/${name}.json` })),
];

export function pageRoutes(app: HttpApp, deps: PageDeps): void {
  const { apiDocs = true } = deps;
  const states = remembered(() => Promise.all(Object.entries(deps.services).map(stateOf)));
  const hidden = { ...everybody, schema: { hide: true } };

  app.get("/", hidden, async (request, reply) => {
    const gateway: ServiceState = { name: "gateway-bff", url: deps.origin, state: "ready" };
    const language = deps.languageOf(request);
    reply.headers({ "content-language": language, vary: "Accept-Language" });
    const services = (await states()).map((service) => (deps.isLoopback ? service : { ...service, url: "" }));
    return asPage(reply).send(pageHtml([gateway, ...services], { language, apiDocs }));
  });
  for (const [path, type] of [
    ["/page.css", "text/css"],
    ["/page.js", "text/javascript"],
  ] as const) {
    const body = file(`.${path}`);
    app.get(path, hidden, (_request, reply) => reply.type(`${type}; charset=utf-8`).send(body));
  }
  if (apiDocs) documentRoute(app, deps);
}

function asPage(reply: FastifyReply): FastifyReply {
  return reply.type("text/html; charset=utf-8").headers(headers);
}

/** A service's own description, from here: the reference page may reach nothing else. */
function documentRoute(app: HttpApp, { services, isLoopback }: PageDeps): void {
  const schema = { hide: true, params: Type.Object({ service: Type.String({ maxLength: 64 }) }) };
  app.get("/openapi/:service.json", { ...everybody, schema }, async ({ params }, reply) => {
    const url = Object.hasOwn(services, params.service) ? services[params.service] : undefined;
    if (!url) throw problems.notFound("there is no service of this name here");
    const answer = await fetch(new URL("/openapi.json", url), { signal: AbortSignal.timeout(lookMs) }).catch(
      () => undefined,
    );
    if (!answer?.ok) throw problems.unavailable(`${params.service} does not answer`, { retryAfterSeconds: 1 });
    const document = (await answer.json()) as object;
    const described = { ...document, ...(isLoopback && { servers: [{ url }] }) };
    return reply.type("application/json; charset=utf-8").send(JSON.stringify(described));
  });
}

const lookMs = 1_000;

async function stateOf([name, url]: readonly [string, string]): Promise<ServiceState> {
  try {
    const { ok } = await fetch(new URL("/readyz", url), { signal: AbortSignal.timeout(lookMs) });
    return { name, url, state: ok ? "ready" : "notReady" };
  } catch {
    return { name, url, state: "away" };
  }
}

const rememberMs = 2_000;

/** However many look at the page, services are asked once in a while. */
function remembered<T>(look: () => Promise<T>): () => Promise<T> {
  let seen: { readonly value: Promise<T>; readonly at: number } | undefined;
  return () => {
    if (!seen || performance.now() - seen.at > rememberMs) seen = { value: look(), at: performance.now() };
    return seen.value;
  };
}
