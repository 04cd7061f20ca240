/**
 * The API documents: one of all services, that of each service, and that of the events. The reference page may load from nowhere
 * else than here. They are public, so they have the addresses of the services on loopback only.
 */
import { asyncApiText } from "@todoke/contracts/asyncapi";
import { type HttpApp, problems, publicRoute } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { withCodeSamples } from "../reference/code-samples.ts";
import { type ApiDocument, gatewayName, mergeDocuments, type Source } from "../reference/merge-documents.ts";

export interface DocumentDeps extends Pick<Deps, "origin" | "isLoopback"> {
  /** The address of each service, by its name, without the gateway. */
  readonly services: Readonly<Record<string, string>>;
}

const hidden = { ...publicRoute, schema: { hide: true } };
const json = "application/json; charset=utf-8";

export function apiDocumentRoutes(app: HttpApp, deps: DocumentDeps): void {
  const { services, isLoopback } = deps;
  const merged = mergedDocument(app, deps);
  app.get("/openapi.json", hidden, async (_request, reply) => reply.type(json).send(await merged()));
  app.get("/asyncapi.json", hidden, (_request, reply) => reply.type(json).send(asyncApiText()));

  const schema = { hide: true, params: Type.Object({ service: Type.String({ maxLength: 64 }) }) };
  app.get("/openapi/:service.json", { ...publicRoute, schema }, async ({ params }, reply) => {
    const url = Object.hasOwn(services, params.service) ? services[params.service] : undefined;
    if (!url) throw problems.notFound("there is no service with this name");
    const document = await fetchDocument(url);
    if (!document) throw problems.unavailable(`${params.service} is unavailable`, { retryAfterSeconds: 1 });
    const withServer = { ...document, ...(isLoopback && { servers: [{ url }] }) };
    return reply.type(json).send(JSON.stringify(withServer));
  });
}

// A service that starts later is in the document soon.
const cacheMs = 5_000;

/** A service that is unavailable is left out. Many readers cause one read of the services. */
function mergedDocument(app: HttpApp, { services, isLoopback, origin }: DocumentDeps): () => Promise<string> {
  let last: { readonly text: Promise<string>; readonly at: number } | undefined;
  async function merge(): Promise<string> {
    const own = { name: gatewayName, url: "", document: app.swagger() as unknown as ApiDocument };
    const found = await Promise.all(
      Object.entries(services).map(async ([name, url]): Promise<Source | undefined> => {
        const document = await fetchDocument(url);
        return document && { name, url: isLoopback ? url : "", document };
      }),
    );
    const document = mergeDocuments([own, ...found.filter((each) => each !== undefined)]);
    const addressOf = (name: string) => (isLoopback && services[name]) || `https://${name}`;
    return JSON.stringify(withCodeSamples(document, { origin, addressOf }));
  }
  return () => {
    if (!last || performance.now() - last.at > cacheMs) last = { text: merge(), at: performance.now() };
    return last.text;
  };
}

const timeoutMs = 1_000;

async function fetchDocument(url: string): Promise<ApiDocument | undefined> {
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(new URL("/openapi.json", url), { signal }).catch(() => undefined);
  return response?.ok ? ((await response.json()) as ApiDocument) : undefined;
}
