/** A load balancer in front of a service's processes: one address, which passes each connection to a process that serves. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Balancer extends AsyncDisposable {
  readonly url: string;
}

/** `targets` are the addresses of the processes that serve now. Without one, a connection is closed. */
export async function openBalancer(targets: () => readonly string[]): Promise<Balancer> {
  const open = new Set<Socket>();
  let next = 0;
  const server = createServer((client) => {
    const all = targets();
    const target = all[next++ % Math.max(1, all.length)];
    if (target === undefined) return void client.destroy();
    const { hostname, port } = new URL(target);
    const upstream = connect(Number(port), hostname);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
