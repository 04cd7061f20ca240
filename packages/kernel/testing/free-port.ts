/**
 * A port of 127.0.0.1 for a service of a test, with room for its ops listener 1000 above.
 *
 * Nobody is given the same one between our look and its use: not by the system, nor by packages/engines, which hand out
 * higher ones; not twice by this process, which remembers; and not by another worker of the test run, which draws from ports
 * of its own. Thousands with an even number are for services, those between them for their ops listeners.
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const workers = 8;
const worker = Number(process.env.VITEST_POOL_ID ?? 0) % workers;
const given = new Set<number>();
// Of 625. What was given that long ago is used by now, or free again: the look tells.
const rememberedMax = 300;

export async function freePort(): Promise<number> {
  if (given.size >= rememberedMax) given.clear();
  const port = 10_000 + 2_000 * randomInt(5) + workers * randomInt(1_000 / workers) + worker;
  if (given.has(port)) return freePort();
  given.add(port);
  return (await isFree(port)) && (await isFree(port + 1_000)) ? port : freePort();
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
