/**
 * A port of 127.0.0.1 that was free a moment ago.
 *
 * Not from the system's own choice (port 0): that lies where outgoing connections get their ports. A client that keeps
 * dialling a killed server would sooner or later be given the server's port for itself, connect to itself, and keep the
 * server from ever coming back. Below 32768 Linux and macOS hand out none.
 *
 * Somebody may still take the port before its server does. The server then fails to bind, and private-engine.ts asks for another.
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const [lowest, past] = [20_000, 32_000];

/** With twelve thousand ports to draw from, a hundred misses mean that none can be had. */
const drawsMax = 100;

export async function freePort(): Promise<number> {
  for (let draw = 0; draw < drawsMax; draw++) {
    const port = randomInt(lowest, past);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port on 127.0.0.1 between ${lowest} and ${past}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
