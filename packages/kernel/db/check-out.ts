/** A connection of a pool, held for a while: one that is ended from outside meanwhile fails its holder's statement, not the process. */
import type pg from "pg";
import type { Db } from "./pool.ts";

/** Listens from the pool's own call on: what ended the connection may have come in one packet with what opened it. */
export function checkOut(db: Db): Promise<pg.PoolClient> {
  const { promise, resolve, reject } = Promise.withResolvers<pg.PoolClient>();
  db.connect((error, client) => {
    client?.on("error", heardElsewhere);
    if (client) resolve(client);
    else reject(error);
  });
  return promise;
}

/** A broken one is closed, not used again. */
export function checkIn(client: pg.PoolClient, broken: boolean): void {
  client.off("error", heardElsewhere);
  client.release(broken);
}

function heardElsewhere(): void {
  // The statement that was running, or the next one, rejects with the same error.
}
