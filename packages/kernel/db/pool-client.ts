/** A connection taken from the pool. If the server ends it, the holder's statement fails and the process goes on. */
import type pg from "pg";
import type { Db } from "./pool.ts";

/** Listens from within the pool's callback, because an error may arrive in the packet that opened the connection. */
export function acquireClient(db: Db): Promise<pg.PoolClient> {
  const { promise, resolve, reject } = Promise.withResolvers<pg.PoolClient>();
  db.connect((error, client) => {
    client?.on("error", reportedByStatement);
    if (client) resolve(client);
    else reject(error);
  });
  return promise;
}

/** Closes a broken connection instead of returning it to the pool. */
export function releaseClient(client: pg.PoolClient, broken: boolean): void {
  client.off("error", reportedByStatement);
  client.release(broken);
}

function reportedByStatement(): void {
  // The running statement, or the next one, rejects with the same error.
}
