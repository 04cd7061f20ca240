/** Opens the pool that a service or a library user works with. */
import pg from "pg";

/** Any pool of node-postgres will do; `openDb` makes one with the settings that the kernel is tested on. */
export type Db = pg.Pool;

/** What can run a statement: a pool (each statement its own transaction) or a transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;

export interface DbOptions {
  readonly url: string;
  /** The schema that unqualified names mean. Each service owns one. */
  readonly schema?: string;
  /** Shown in pg_stat_activity, so that an operator sees who holds what. */
  readonly applicationName?: string;
  /** Two cores are busy with eight; more connections only queue inside the server. */
  readonly poolMax?: number;
  readonly connectTimeoutMs?: number;
  readonly statementTimeoutMs?: number;
  readonly lockTimeoutMs?: number;
  readonly idleInTransactionTimeoutMs?: number;
  /** Hears of connections lost while idle. They are replaced; nothing else needs doing. */
  readonly onConnectionError?: (error: Error) => void;
}

/**
 * The kernel's statements are index probes, and must stay so on an empty table, on stale statistics and in a plan that
 * was cached a million rows ago: there a cached sequential scan halves the throughput (docs/adr/0003).
 */
const probesOnly = ["enable_seqscan", "enable_bitmapscan"];

export function openDb(options: DbOptions): Db {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  const { url, settings } = takeSettings(options.url);
  const pool = new pg.Pool({
    connectionString: url,
    application_name: options.applicationName ?? "todoke",
    max: options.poolMax ?? 8,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    // The server's own timeout should win; this one is for a server that no longer answers at all.
    query_timeout: statementTimeoutMs + 2_000,
    lock_timeout: options.lockTimeoutMs ?? 5_000,
    idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 10_000,
    options: sessionSettings(settings, options.schema),
    types: { getTypeParser: wholeNumbers },
  });
  // Without a listener, the loss of an idle connection would end the process.
  pool.on("error", (error) => options.onConnectionError?.(error));
  return pool;
}

/** Settings that the operator put into the URL (`?options=-c …`) come after ours and win, but for the schema. */
function sessionSettings(fromUrl: string, schema: string | undefined): string {
  const settings = [...probesOnly.map((name) => `-c ${name}=off`), fromUrl];
  if (schema) settings.push(`-c search_path=${identifier(schema)}`);
  return settings.join(" ");
}

/** node-postgres lets the URL's options replace those given beside it; here they are added up. */
function takeSettings(given: string): { url: string; settings: string } {
  const url = new URL(given);
  const settings = url.searchParams.get("options") ?? "";
  url.searchParams.delete("options");
  return { url: url.href, settings };
}

/** A name that may stand in SQL as it is. Names come from code and configuration, and are checked all the same. */
export function identifier(name: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(name)) {
    throw new Error(
      `"${name}" cannot be a name in the database: use a-z, 0-9 and _, at most 63, not starting with a digit`,
    );
  }
  return name;
}

const int8 = 20;
const int8Array = 1016;

function wholeNumbers(oid: number, format?: "text" | "binary") {
  if (format !== "binary") {
    if (oid === int8) return BigInt;
    if (oid === int8Array) return (text: string) => int8ArrayParser(text).map(BigInt);
  }
  return pg.types.getTypeParser(oid, format as "text");
}

const int8ArrayParser = pg.types.getTypeParser(int8Array as number, "text") as (text: string) => string[];
