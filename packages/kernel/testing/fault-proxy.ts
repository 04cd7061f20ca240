/**
 * A TCP proxy that injects network faults. Give a program the proxy's URL: a cut looks to it like a lost peer or network. A
 * cut at a chosen request or response shows what happens when the other side acted and the response was lost, or when the
 * request never arrived.
 */
import { connect, createServer, type Socket } from "node:net";

export interface FaultProxy extends AsyncDisposable {
  /** The target's URL with the address of the proxy. */
  readonly url: string;
  /** Destroys all connections, current and future. */
  cut(): void;
  /** Drops everything that the target sends, while it still receives. */
  dropResponses(): void;
  /** Drops everything in both directions without closing a connection: a black hole. */
  dropAll(): void;
  /** Ends `dropResponses` and `dropAll`. What was dropped is lost. */
  stopDropping(): void;
  /** Delays everything in both directions by `ms`. 0 ends it. */
  delay(ms: number): void;
  /** Destroys current connections; new ones are accepted. */
  closeConnections(): void;
  /**
   * Destroys the next connection on which a request contains `text`, once: before the request is forwarded, or when its
   * response arrives. Resolves when that has happened. Another call replaces one that still waits.
   */
  cutNext(text: string, lose: "request" | "answer"): Promise<void>;
  /** Cancels a waiting `cutNext`. */
  disarm(): void;
  /**
   * Forwards `bytes` more bytes of requests, or of responses, and destroys the connection in the place of the next one, once.
   * Returns whether that has not happened yet. Another call replaces one that still waits.
   */
  cutAfter(bytes: number, direction: "request" | "answer"): () => boolean;
}

/** Opens a proxy to the target. */
export async function openFaultProxy(target: string): Promise<FaultProxy> {
  const end = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  let dropsResponses = false;
  let dropsAll = false;
  let delayMs = 0;
  let counted: { readonly direction: "request" | "answer"; left: number } | undefined;
  let armed: { readonly text: string; readonly lose: "request" | "answer"; readonly onCut: () => void } | undefined;

  const track = (socket: Socket, peer: () => Socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      peer().destroy();
    });
  };

  /** Forwards what is before the cut. Returns whether the connection was cut. */
  function cutWithin(data: Buffer, direction: "request" | "answer", [from, to]: readonly [Socket, Socket]): boolean {
    if (counted?.direction !== direction) return false;
    if (data.length <= counted.left) {
      counted.left -= data.length;
      return false;
    }
    const part = data.subarray(0, counted.left);
    counted = undefined;
    from.pause();
    to.write(part, () => to.destroy());
    return true;
  }

  const server = createServer((client) => {
    if (isCut) {
      client.on("error", () => {});
      client.destroy();
      return;
    }
    const upstream = connect(Number(end.port), end.hostname);
    let onResponseLost: (() => void) | undefined;
    track(client, () => upstream);
    track(upstream, () => client);
    const sendUpstream = delayedWriter(upstream, () => delayMs);
    const sendToClient = delayedWriter(client, () => delayMs);
    client.on("data", (data: Buffer) => {
      if (dropsAll) return;
      const hit = armed && data.includes(armed.text) ? armed : undefined;
      if (hit) armed = undefined;
      if (hit?.lose === "request") {
        client.destroy();
        return hit.onCut();
      }
      if (hit?.lose === "answer") onResponseLost = hit.onCut;
      if (cutWithin(data, "request", [client, upstream])) return;
      sendUpstream(data);
    });
    upstream.on("data", (data: Buffer) => {
      if (cutWithin(data, "answer", [upstream, client])) return;
      // The response is here, so the target has executed the request; the client never receives it.
      if (onResponseLost) {
        client.destroy();
        onResponseLost();
      } else if (!dropsResponses && !dropsAll) sendToClient(data);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));

  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the fault proxy has no port");
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String(address.port);
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  const cut = () => {
    isCut = true;
    closeConnections();
  };
  return {
    url: url.href,
    cut,
    closeConnections,
    dropResponses: () => {
      dropsResponses = true;
    },
    dropAll: () => {
      dropsAll = true;
    },
    stopDropping: () => {
      dropsResponses = false;
      dropsAll = false;
    },
    delay: (ms) => {
      delayMs = ms;
    },
    cutNext: (text, lose) => new Promise((onCut) => (armed = { text, lose, onCut })),
    disarm: () => {
      armed = undefined;
    },
    cutAfter: (left, direction) => {
      const own = { direction, left };
      counted = own;
      return () => counted === own;
    },
    [Symbol.asyncDispose]: () => {
      cut();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}

/** One direction of a connection. Data stays in order when the delay changes. */
function delayedWriter(to: Socket, delayMs: () => number): (data: Buffer | string) => void {
  const inFlight: { readonly data: Buffer | string; readonly dueAt: number }[] = [];
  const write = (data: Buffer | string) => {
    if (!to.destroyed) to.write(data);
  };
  const writeFirst = () => {
    const first = inFlight.shift();
    if (first) write(first.data);
    wait();
  };
  const wait = () => {
    const [next] = inFlight;
    if (next) setTimeout(writeFirst, Math.max(0, next.dueAt - performance.now()));
  };
  return (data) => {
    if (delayMs() === 0 && inFlight.length === 0) return write(data);
    inFlight.push({ data, dueAt: performance.now() + delayMs() });
    if (inFlight.length === 1) wait();
  };
}
