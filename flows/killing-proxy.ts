/** An HTTP proxy in front of services that kills their caller at a chosen request. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Trap {
  /** The request is the next one whose path ends with it. */
  readonly path: string;
  /** Before: the service does not get the request yet. After: the service has answered, and the caller does not get the answer. */
  readonly when: "before" | "after";
  /** Resolves when the caller is dead. */
  readonly kill: () => Promise<unknown>;
}

const passed = ["authorization", "content-type", "idempotency-key", "idempotency-replayed", "retry-after"];

export async function startKillingProxy(targetOf: (path: string) => string) {
  let trap: Trap | undefined;
  const delayed: (() => Promise<Response>)[] = [];

  async function read(request: IncomingMessage): Promise<() => Promise<Response>> {
    const { method = "GET", url = "/" } = request;
    const body = await text(request);
    const headers = Object.fromEntries(passed.flatMap((name) => [[name, String(request.headers[name] ?? "")]]));
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ""));
    return () => fetch(targetOf(url) + url, { method, headers: sent, ...(body && { body }) });
  }

  const server = createServer(async (request, response) => {
    const send = await read(request);
    const sprung = trap && request.url?.endsWith(trap.path) ? trap : undefined;
    if (sprung) {
      trap = undefined;
      if (sprung.when === "after") await send();
      else delayed.push(send);
      await sprung.kill();
      return void response.destroy();
    }
    const answer = await send();
    const headers = Object.fromEntries([...answer.headers].filter(([name]) => passed.includes(name)));
    response.writeHead(answer.status, headers).end(await answer.text());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    killAt(next: Trap): void {
      trap = next;
    },
    /** Delivers the requests that were held back, as a slow network does. Returns their statuses. */
    async deliverDelayed(): Promise<number[]> {
      const answers = await Promise.all(delayed.splice(0).map((send) => send()));
      return answers.map(({ status }) => status);
    },
    [Symbol.asyncDispose]: async () => void server.close().closeAllConnections(),
  };
}
