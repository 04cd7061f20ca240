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
  /** From now on nothing gets through either way, and nobody is told: a black hole. */
  swallow(): void;
  /** Undoes `deafen` and `swallow`. What was said in between is lost. */
  listenAgain(): void;
  /** Whatever is said from now on takes `ms` longer, each way. 0 ends it. */
  delay(ms: number): void;
  /** Destroys what is connected; who connects again is served. */
  hiccup(): void;
  /**
   * Destroys the next connection on which a request with `text` in it is seen, once: before it goes by, or after it is
   * answered. Resolves when that has happened; another call takes the place of one that still waits.
   */
  cutNext(text: string, lose: "request" | "answer"): Promise<void>;
  /** Forgets what `cutNext` waits for. */
  disarm(): void;
}

export async function openWire(target: string): Promise<Wire> {
  const end = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  let isDeaf = false;
  let isSwallowing = false;
  let delayMs = 0;
  let armed: { readonly text: string; readonly lose: "request" | "answer"; readonly cut: () => void } | undefined;

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
    let losing: (() => void) | undefined;
    keep(client, () => upstream);
    keep(upstream, () => client);
    const [toUpstream, toClient] = [lane(upstream, () => delayMs), lane(client, () => delayMs)];
    client.on("data", (said) => {
      if (isSwallowing) return;
      const hit = armed && said.includes(armed.text) ? armed : undefined;
      if (hit) armed = undefined;
      if (hit?.lose === "request") {
        client.destroy();
        return hit.cut();
      }
      if (hit?.lose === "answer") losing = hit.cut;
      toUpstream(said);
    });
    upstream.on("data", (said) => {
      // When the answer is here, the other end has done it; our side never hears of it.
      if (losing) {
        client.destroy();
        losing();
      } else if (!isDeaf && !isSwallowing) toClient(said);
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
    swallow: () => {
      isSwallowing = true;
    },
    listenAgain: () => {
      isDeaf = false;
      isSwallowing = false;
    },
    delay: (ms) => {
      delayMs = ms;
    },
    cutNext: (text, lose) => new Promise((cut) => (armed = { text, lose, cut })),
    disarm: () => {
      armed = undefined;
    },
    [Symbol.asyncDispose]: () => {
      cut();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}

/** One direction of a connection: what is said arrives in the order in which it was said, however the delay changes. */
function lane(to: Socket, delayMs: () => number): (said: Buffer | string) => void {
  const underWay: { readonly said: Buffer | string; readonly dueAt: number }[] = [];
  const write = (said: Buffer | string) => {
    if (!to.destroyed) to.write(said);
  };
  const arrive = () => {
    const first = underWay.shift();
    if (first) write(first.said);
    wait();
  };
  const wait = () => {
    const [next] = underWay;
    if (next) setTimeout(arrive, Math.max(0, next.dueAt - performance.now()));
  };
  return (said) => {
    if (delayMs() === 0 && underWay.length === 0) return write(said);
    underWay.push({ said, dueAt: performance.now() + delayMs() });
    if (underWay.length === 1) wait();
  };
}
