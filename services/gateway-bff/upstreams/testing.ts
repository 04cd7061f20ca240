/** For tests: a service that answers as it is told, or does not, and remembers what it heard. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { freePort } from "@todoke/kernel/testing";

export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** How it answers; one that does nothing never answers. */
export type Manner = (response: ServerResponse, heard: Heard) => void;

export const answering =
  (
    value: unknown,
    { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
  ): Manner =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
    response.end(JSON.stringify(value));
  };

export const refusing = (status: number, code: string, more: object = {}): Manner =>
  answering(
    { type: "about:blank", title: "No", status, code, detail: "not like this", ...more },
    { status, headers: { "content-type": "application/problem+json; charset=utf-8" } },
  );

/** Longer than any test: whoever waits for so long is found by the end of the test, and a machine that stands still is not. */
export const longMs = 600_000;

export const silent: Manner = () => {};
export const hangingUp: Manner = (response) => void response.destroy();

/** Keeps whoever asks waiting until it is let go. */
export function holding(answer: Manner) {
  const released = Promise.withResolvers<void>();
  const manner: Manner = (response, heard) => void released.promise.then(() => answer(response, heard));
  return { manner, letGo: released.resolve, [Symbol.dispose]: released.resolve };
}

export async function fakeService(manner: Manner) {
  const heard: Heard[] = [];
  const state = { manner };
  const server = createServer(async (request, response) => {
    const { method = "", url: path = "", headers } = request;
    const one = { method, path, headers, body: await text(request).catch(() => "") };
    heard.push(one);
    state.manner(response, one);
  });
  // Nobody else is given it: once the service is gone, nobody answers there.
  server.listen(await freePort(), "127.0.0.1");
  await once(server, "listening");
  const { port: at } = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${at}`),
    heard,
    /** From now on. */
    behave(manner: Manner) {
      state.manner = manner;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      if (server.listening) await new Promise((closed) => server.close(closed));
    },
  };
}
