/**
 * Free ports on 127.0.0.1.
 *
 * `findFreePort` does not use port 0, because the system then picks from the range of outgoing connections. A client that
 * keeps dialling a killed server could be given the server's port, connect to itself, and keep the server from restarting.
 * Linux and macOS assign no outgoing ports below 32768.
 *
 * Another process may still take the port before the server does. The server then fails to bind, and private-engine.ts
 * tries another port.
 */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

const [portMin, portLimit] = [20_000, 32_000];

/** If 100 of 12,000 ports are in use, something is wrong. */
const attemptsMax = 100;

export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const port = randomInt(portMin, portLimit);
    if (await isPortFree(port)) return port;
  }
  throw new Error(`no free port on 127.0.0.1 between ${portMin} and ${portLimit}`);
}

/** Rejects if the host is no address of this machine. */
export async function isPortFree(port: number, host = "127.0.0.1"): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ port, host, exclusive: true });
    await once(server, "listening");
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  } finally {
    server.close();
  }
}
