/** For tests: a fake service that records its requests and responds as the test sets. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { freePort } from "@todoke/kernel/testing";

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Responds to a request; one that does nothing never responds. */
export type Behaviour = (response: ServerResponse, received: ReceivedRequest) => void;

export const answering =
  (
    value: unknown,
    { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
  ): Behaviour =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
    response.end(JSON.stringify(value));
  };

const idIn = ({ path }: ReceivedRequest) => /[0-9a-f-]{36}/.exec(path)?.[0] ?? "";

/** Reads of one user, and of many (shared-reads.ts). */
export const answeringEach =
  (viewOf: (userId: string) => unknown, headers: { readonly etag?: string } = {}): Behaviour =>
  (response, received) => {
    const [path = "", userIds = ""] = received.path.split("?user_ids=");
    if (!path.startsWith("/shared-reads/")) return answering(viewOf(idIn(received)), { headers })(response, received);
    const results = userIds.split(",").map((id) => ({ status: 200, body: JSON.stringify(viewOf(id)), ...headers }));
    answering({ results })(response, received);
  };

export const refusing = (status: number, code: string, more: object = {}): Behaviour =>
  answering(
    { type: "about:blank", title: "No", status, code, detail: "not like this", ...more },
    { status, headers: { "content-type": "application/problem+json; charset=utf-8" } },
  );

/** Longer than any test, so that a slow machine causes no timeout; a call that waits so long fails at the end of the test. */
export const longMs = 600_000;

export const silent: Behaviour = () => {};
export const hangingUp: Behaviour = (response) => void response.destroy();

/** Holds every response until it is released. */
export function holding(behaviour: Behaviour) {
  const released = Promise.withResolvers<void>();
  const held: Behaviour = (response, received) => void released.promise.then(() => behaviour(response, received));
  return { behaviour: held, release: released.resolve, [Symbol.dispose]: released.resolve };
}

export async function fakeService(behaviour: Behaviour) {
  const received: ReceivedRequest[] = [];
  const state = { behaviour };
  const server = createServer(async (request, response) => {
    const { method = "", url: path = "", headers } = request;
    const one = { method, path, headers, body: await text(request).catch(() => "") };
    received.push(one);
    state.behaviour(response, one);
  });
  // A reserved port: after the service has stopped, no other process listens there.
  server.listen(await freePort(), "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${port}`),
    received,
    /** For requests from now on. */
    setBehaviour(next: Behaviour) {
      state.behaviour = next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      if (server.listening) await new Promise((closed) => server.close(closed));
    },
  };
}
