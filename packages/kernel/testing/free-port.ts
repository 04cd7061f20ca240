/**
 * A free port on 127.0.0.1 for a service in a test, with its ops listener 1000 above.
 *
 * The port stays free until it is used: the system and packages/engines assign higher ports, this process remembers what it
 * returned, and every worker of the test run draws from its own ports. Even thousands are for services, odd ones for their
 * ops listeners.
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const workers = 8;
const worker = Number(process.env.VITEST_POOL_ID ?? 0) % workers;
const returned = new Set<number>();
// Of 625. Ports returned earlier are in use by now or free again, which the check finds out.
const rememberedMax = 300;

export async function freePort(): Promise<number> {
  if (returned.size >= rememberedMax) returned.clear();
  const port = 10_000 + 2_000 * randomInt(5) + workers * randomInt(1_000 / workers) + worker;
  if (returned.has(port)) return freePort();
  returned.add(port);
  return (await isFree(port)) && (await isFree(port + 1_000)) ? port : freePort();
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
