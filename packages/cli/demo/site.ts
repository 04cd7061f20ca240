/**
 * The site of `todoke demo`: one origin for the shop and the gateway, whose session cookie belongs to one (docs/adr/0167). In
 * production the proxy that ends TLS does this.
 */
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";

/** Answers a request itself, instead of passing it on. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface SiteOptions {
  readonly port: number;
  /** Where requests of this path go; undefined while nothing runs there. */
  target(path: string): URL | undefined;
  /** By path. */
  readonly handlers: Readonly<Record<string, Handler>>;
}

export async function startSite({ port, target, handlers }: SiteOptions): Promise<AsyncDisposable> {
  const server = createServer((request, response) => {
    const [path = "/"] = (request.url ?? "/").split("?");
    const handler = Object.hasOwn(handlers, path) ? handlers[path] : undefined;
    if (handler) return handler(request, response);
    const url = target(path);
    if (url) passOn(url, request, response).catch(() => refuse(response));
    else refuse(response);
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections(); // Streams do not end by themselves.
      await closed;
    },
  };
}

/** With the host name as it was: the gateway compares it with its origin. A caller who leaves takes the request along. */
async function passOn({ hostname, port }: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url: path, headers } = request;
  const passed = httpRequest({ hostname, port, method, path, headers });
  response.once("close", () => passed.destroy());
  const answered = once(passed, "response") as Promise<[IncomingMessage]>;
  const [[answer]] = await Promise.all([answered, pipeline(request, passed)]);
  response.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders();
  await pipeline(answer, response);
}

/** An answer that was begun is cut, so that nobody takes it for a whole one. */
function refuse(response: ServerResponse): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(503, { "retry-after": "1" }).end();
}
