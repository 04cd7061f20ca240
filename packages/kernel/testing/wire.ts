/**
 * A TCP connection that a test can cut. What a program that was given its URL meets is what one meets whose peer, or
 * whose network, is gone; cut at a chosen moment, it is also what one meets whose answer got lost: the other side did it
 * and nobody heard, or it never heard of it and nobody knows.
 */
import { connect, createServer, type Socket } from "node:net";

export interface Wire extends AsyncDisposable {
  /** The address of the other end with this wire's port in it. */
  readonly url: string;
  /** Destroys what is connected and whatever connects from now on. */
  cut(): void;
  /** From now on nothing that the other end says gets through, while it still hears everything. */
  deafen(): void;
  /** Undoes `deafen`. What was said in between is lost. */
  listenAgain(): void;
  /** Destroys what is connected; who connects again is served. */
  hiccup(): void;
  /** Destroys the next connection on which a request with `text` in it is seen, once: before it goes by, or after it is answered. */
  cutNext(text: string, lose: "request" | "answer"): void;
}

export async function openWire(target: string): Promise<Wire> {
  const end = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  let isDeaf = false;
  let armed: { readonly text: string; readonly lose: "request" | "answer" } | undefined;

  const keep = (socket: Socket, peer: () => Socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      peer().destroy();
    });
  };

  const server = createServer((client) => {
    if (isCut) {
      client.on("error", () => {});
      client.destroy();
      return;
    }
    const upstream = connect(Number(end.port), end.hostname);
    let isLosing = false;
    keep(client, () => upstream);
    keep(upstream, () => client);
    client.on("data", (said) => {
      const hit = armed && said.includes(armed.text) ? armed : undefined;
      if (hit) armed = undefined;
      if (hit?.lose === "request") return void client.destroy();
      if (hit?.lose === "answer") isLosing = true;
      upstream.write(said);
    });
    upstream.on("data", (said) => {
      // When the answer is here, the other end has done it; our side never hears of it.
      if (isLosing) client.destroy();
      else if (!isDeaf && !client.destroyed) client.write(said);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));

  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the wire has no port");
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String(address.port);
  const hiccup = () => {
    for (const socket of sockets) socket.destroy();
  };
  const cut = () => {
    isCut = true;
    hiccup();
  };
  return {
    url: url.href,
    cut,
    hiccup,
    deafen: () => {
      isDeaf = true;
    },
    listenAgain: () => {
      isDeaf = false;
    },
    cutNext: (text, lose) => {
      armed = { text, lose };
    },
    [Symbol.asyncDispose]: () => {
      cut();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}
