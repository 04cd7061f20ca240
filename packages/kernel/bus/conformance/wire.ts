/**
 * A TCP connection to a broker that a test can cut: what a bus opened through it meets is what a process meets that was
 * killed, or whose network was.
 */
import { connect, createServer, type Socket } from "node:net";

export interface Wire extends AsyncDisposable {
  /** The broker's address with this wire's port in it. */
  readonly url: string;
  /** Destroys what is connected and whatever connects from now on. */
  cut(): void;
  /** From now on nothing that the broker says gets through, while it still hears everything. */
  deafen(): void;
  listenAgain(): void;
  /** Destroys what is connected; who connects again is served. */
  hiccup(): void;
}

export async function openWire(brokerUrl: string): Promise<Wire> {
  const broker = new URL(brokerUrl);
  const sockets = new Set<Socket>();
  let isCut = false;
  let isDeaf = false;

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
    const upstream = connect(Number(broker.port), broker.hostname);
    keep(client, () => upstream);
    keep(upstream, () => client);
    client.pipe(upstream);
    upstream.on("data", (said) => isDeaf || client.destroyed || client.write(said));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));

  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the wire has no port");
  const url = new URL(brokerUrl);
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
    [Symbol.asyncDispose]: () => {
      cut();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}
