/**
 * Connections to PostgreSQL by node-postgres, with what it lacks: several servers of which one accepts writes, errors that say
 * what is wrong with a certificate, and PgBouncer in transaction mode.
 */
import pg from "pg";
import { explainConnectionError } from "../server-url/index.ts";
import { parseDatabaseUrl } from "./database-url.ts";
import { getSqlState } from "./errors.ts";
import { findPrimary } from "./find-primary.ts";

/** A class that a pool can create connections from. */
export type ClientClass = new (config: pg.ClientConfig) => pg.Client;

/**
 * The connections of a URL. `pooledSettings` are set in every transaction: behind PgBouncer there is no session to set them in, and the
 * next transaction of another process would find what this one left.
 */
export function clientClass(url: string, pooledSettings: readonly string[] = []): ClientClass {
  const { servers, isPooled } = parseDatabaseUrl(url);
  const [only = ""] = servers;
  const findServer = servers.length > 1 ? sharedWhileRunning(() => findPrimary(servers)) : async () => ({});
  const start = ["begin", ...pooledSettings.map(setLocal)].join("; ");

  class Connection extends pg.Client {
    constructor(config: pg.ClientConfig) {
      super({ ...config, connectionString: only });
      // An error may arrive before the pool listens. The next statement rejects with it.
      this.on("error", () => {});
      this.on("notice", (notice) => {
        if ("routine" in notice && notice.routine === replicationWait) unreplicated.add(this);
      });
    }

    override connect(...args: unknown[]): never {
      return toCallback(this.#open(), args[0] as Callback | undefined) as never;
    }

    async #open(): Promise<this> {
      try {
        Object.assign(this, await findServer()); // The same user, database and TLS, at its address.
        await super.connect();
        return this;
      } catch (error) {
        throw explainConnectionError(error, "PostgreSQL", url);
      }
    }
  }

  /** Every statement outside a transaction gets one, because settings last until its end only. */
  class PooledConnection extends Connection {
    // node-postgres has a dozen signatures of it. The pool uses callbacks, the kernel promises.
    override query(...args: unknown[]): never {
      const callback = args.findLast((arg) => typeof arg === "function") as Callback | undefined;
      const [query, values] = args.filter((arg) => arg !== callback);
      const config = typeof query === "string" ? { text: query } : (query as pg.QueryConfig);
      return toCallback(
        this.#run({ ...config, ...(values !== undefined && { values }) } as pg.QueryConfig),
        callback,
      ) as never;
    }

    async #run({ name: _, ...query }: pg.QueryConfig): Promise<unknown> {
      // A prepared statement stays in one connection to the server, and the next transaction may get another one.
      if (/^begin\b/i.test(query.text)) return super.query(query.text.replace(/^begin/i, start));
      if (this.getTransactionStatus() !== "I") return super.query(query);
      await super.query(start);
      try {
        const result = await super.query(query);
        await super.query("commit");
        return result;
      } catch (error) {
        // Any other error leaves the connection in an unknown state; the code that took it from the pool closes it.
        if (getSqlState(error) !== undefined) await super.query("rollback").catch(() => {});
        throw error;
      }
    }
  }

  return isPooled ? PooledConnection : Connection;
}

/** The function of PostgreSQL in which a commit waits for its standby. Texts are translated; this name is not. */
const replicationWait = "SyncRepWaitForLSN";

const unreplicated = new WeakSet<object>();

/**
 * Whether PostgreSQL answered a commit of this connection although the standby had not confirmed it, because somebody cancelled the
 * wait (`pg_cancel_backend`). The answer is like any other; only a notice tells.
 */
export const isUnreplicated = (client: object): boolean => unreplicated.has(client);

/** "search_path=app" */
function setLocal(setting: string): string {
  const [name = "", ...value] = setting.split("=");
  return `set local ${name} = '${value.join("=").replaceAll("'", "''")}'`;
}

type Callback = (error: Error | null, result?: unknown) => void;

function toCallback<T>(result: Promise<T>, callback: Callback | undefined): Promise<T> | undefined {
  if (!callback) return result;
  // Outside the promise: an error that the callback throws is not a rejection of ours.
  result.then(
    (value) => process.nextTick(callback, null, value),
    (error) => process.nextTick(callback, error),
  );
  return undefined;
}

/** Callers at the same time share one run. */
function sharedWhileRunning<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
}
