/**
 * A proxy in front of a service that puts a valid credential in the place of a placeholder, and remembers the IDs in responses. A
 * program that makes requests up cannot sign the gateway's tokens, which live for a minute, and does not guess an ID.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { AddressInfo } from "node:net";

/** Returns the bearer token for a request, if its route needs one. */
export type Authorize = (method: string, path: string) => Promise<string | undefined>;

export interface AuthorizingProxy extends AsyncDisposable {
  readonly url: string;
}

/** The proxy's own path: what it has seen so far. */
const seenPath = "/.seen";

interface Seen {
  /** How often each status was returned. */
  readonly statuses: Readonly<Record<string, number>>;
  /** The last values of fields like `hold_id`. */
  readonly ids: Readonly<Record<string, readonly string[]>>;
}

/** A request with any other credential, or with none, stays as it is. */
const placeholder = "Bearer placeholder";

const idsMax = 20;

export async function startProxy(target: string, authorize: Authorize): Promise<AuthorizingProxy> {
  const statuses = new Map<number, number>();
  const ids = new Map<string, string[]>();

  function remember(body: string): void {
    for (const [, name = "", id = ""] of body.matchAll(/"(\w*_id|id|idempotency_key)":"([\w.:-]{1,100})"/g))
      ids.set(name, [...new Set([...(ids.get(name) ?? []), id])].slice(-idsMax));
  }

  function respond(response: IncomingMessage, outgoing: ServerResponse): void {
    const { statusCode = 0, headers } = response;
    statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
    outgoing.writeHead(statusCode, headers);
    const isRemembered = statusCode < 300 && headers["content-type"]?.startsWith("application/json");
    if (isRemembered) response.on("data", (part: Buffer) => remember(part.toString("utf8")));
    response.on("error", () => outgoing.destroy()).pipe(outgoing);
  }

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = "GET", url: path = "/", headers } = incoming;
    if (path === seenPath) {
      const seen: Seen = { statuses: Object.fromEntries(statuses), ids: Object.fromEntries(ids) };
      return void outgoing.end(JSON.stringify(seen));
    }
    const isPlaceholder = headers.authorization === placeholder;
    const bearer = isPlaceholder ? await authorize(method, path.replace(/\?.*/s, "")) : undefined;
    const { hostname, port } = new URL(target);
    if (bearer) headers.authorization = `Bearer ${bearer}`;
    const request = send({ hostname, port, method, path, headers }, (response) => respond(response, outgoing));
    request.on("error", () => outgoing.destroy());
    outgoing.on("close", () => request.destroy());
    incoming.pipe(request);
  }

  const server = createServer((incoming, outgoing) => void pass(incoming, outgoing).catch(() => outgoing.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
