/**
 * Closes the connections of a pool to a server that is no longer the primary. Such a server may be silent, or wait for ever for the
 * standby that left it: without this, every connection would hang until its statement timed out
 * (docs/adr/0173).
 */
import type pg from "pg";
import { type Address, findPrimary } from "./find-primary.ts";

/** Most statements take milliseconds. A connection that is used for longer may hang. */
const hangsMs = 2_000;

export function followPrimary(pool: pg.Pool, servers: readonly string[]): void {
  const usedSince = new Map<pg.PoolClient, number>();
  const open = new Set<pg.PoolClient>();
  let timer: NodeJS.Timeout | undefined;
  let isSearching = false;
  pool.on("connect", (client) => {
    open.add(client);
    timer ??= setInterval(() => void check(), hangsMs).unref();
  });
  pool.on("remove", (client) => {
    open.delete(client);
    usedSince.delete(client);
    if (open.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  });
  pool.on("acquire", (client) => usedSince.set(client, performance.now()));
  pool.on("release", (_, client) => void usedSince.delete(client));

  async function check(): Promise<void> {
    const oldest = Math.min(...usedSince.values());
    if (isSearching || performance.now() - oldest < hangsMs) return;
    isSearching = true;
    const primary = await findPrimary(servers).catch(() => undefined);
    isSearching = false;
    if (primary) for (const client of open) if (!isAt(client, primary)) close(client);
  }
}

const isAt = (client: pg.PoolClient, { host, port }: Address) => {
  const { host: ownHost, port: ownPort } = client as unknown as pg.Client;
  return ownHost === host && ownPort === port;
};

/** At once: an orderly end would wait for the answer that does not come. The running statement rejects. */
function close(client: pg.PoolClient): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}
