/**
 * A TCP proxy that cuts a connection at a chosen moment: after a request went by and before its answer comes back
 * (the other side did it, and nobody heard), or before the request goes by (nothing happened, and nobody knows).
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface CutProxy extends AsyncDisposable {
  /** The given URL, through the proxy. */
  readonly url: string;
  /** Cuts the next connection on which a request containing `text` is seen, once; resolves when it has. */
  cutNext(text: string, lose: "request" | "answer"): Promise<void>;
  /** Cuts every connection there is. */
  cutAll(): void;
}

export async function cutProxy(target: string): Promise<CutProxy> {
  const to = new URL(target);
  interface Cut {
    readonly text: string;
    readonly lose: "request" | "answer";
    readonly done: () => void;
  }
  let armed: Cut | undefined;
  const sockets = new Set<Socket>();

  const server = createServer((client) => {
    const upstream = connect(Number(to.port), to.hostname);
    let losing: Cut | undefined;
    const cut = (why?: Cut) => {
      client.destroy();
      upstream.destroy();
      why?.done();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => cut()).on("close", () => {
        sockets.delete(socket);
        cut();
      });
    }
    client.on("data", (bytes) => {
      const hit = armed && bytes.includes(armed.text) ? armed : undefined;
      if (hit) armed = undefined;
      if (hit?.lose === "request") return cut(hit);
      if (hit?.lose === "answer") losing = hit;
      upstream.write(bytes);
    });
    // When the answer is here the other side has done it; our side never hears of it.
    upstream.on("data", (bytes) => (losing ? cut(losing) : void client.write(bytes)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cutNext: (text, lose) =>
      new Promise((done) => {
        armed = { text, lose, done };
      }),
    cutAll: () => sockets.forEach((socket) => void socket.destroy()),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
