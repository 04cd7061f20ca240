/** Connection pools with the settings that the kernel is tested with, and connections taken from them. */
import pg from "pg";

/** Any node-postgres pool works; `openDb` opens one with the settings that the kernel is tested with. */
export type Db = pg.Pool;

/** Runs statements: a pool (each statement is its own transaction) or a transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;

export interface DbOptions {
  readonly url: string;
  /** The schema of unqualified names. Each service owns one. */
  readonly schema?: string;
  /** How long the statements of this pool keep an idempotency key; 24 hours by default. */
  readonly idempotencyMs?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
  /** Eight connections keep two cores busy; more only queue inside the server. */
  readonly poolMax?: number;
  readonly connectTimeoutMs?: number;
  readonly statementTimeoutMs?: number;
  readonly lockTimeoutMs?: number;
  readonly idleInTransactionTimeoutMs?: number;
  /** Called when an idle connection is lost. The pool replaces it. */
  readonly onConnectionError?: (error: Error) => void;
}

/**
 * Turned off. The kernel's statements must stay index probes on an empty table, with stale statistics and in a plan that
 * was cached a million rows ago; a cached sequential scan halves the throughput (docs/adr/0003).
 */
const disabledScans = ["enable_seqscan", "enable_bitmapscan"];

/** A setting of the session, so that it need not pass through every command to the statement that inserts a key. */
export const idempotencySetting = "todoke.idempotency_ms";

/** Opens a pool. Close it with `db.end()`. */
export function openDb(options: DbOptions): Db {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  const { url, settings } = splitSettings(options.url);
  const pool = new pg.Pool({
    connectionString: url,
    application_name: options.applicationName ?? "todoke",
    max: options.poolMax ?? 8,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    // Later than the server's own timeout: for a server that does not respond at all.
    query_timeout: statementTimeoutMs + 2_000,
    lock_timeout: options.lockTimeoutMs ?? 5_000,
    idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 10_000,
    options: sessionSettings(settings, options),
    types: { getTypeParser },
  });
  // Without a listener, losing an idle connection would end the process.
  pool.on("error", (error) => options.onConnectionError?.(error));
  return pool;
}

/**
 * Takes a connection from the pool. If the server ends it, the holder's statement fails and the process goes on.
 * Listens from within the pool's callback, because an error may arrive in the packet that opened the connection.
 */
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

/** Settings in the URL (`?options=-c …`) come after ours and override them, except for the schema. */
function sessionSettings(fromUrl: string, { schema, idempotencyMs }: DbOptions): string {
  const settings = [...disabledScans.map((name) => `-c ${name}=off`), fromUrl];
  if (idempotencyMs !== undefined) settings.push(`-c ${idempotencySetting}=${Math.ceil(idempotencyMs)}`);
  if (schema) settings.push(`-c search_path=${identifier(schema)}`);
  return settings.join(" ");
}

/** node-postgres replaces the given options by those of the URL; here they are combined. */
function splitSettings(given: string): { url: string; settings: string } {
  const url = new URL(given);
  const settings = url.searchParams.get("options") ?? "";
  url.searchParams.delete("options");
  return { url: url.href, settings };
}

/** Returns a name that can go into SQL unescaped, or throws. Names come from code and settings and are checked anyway. */
export function identifier(name: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(name)) {
    throw new Error(
      `"${name}" is not a valid database name: use a-z, 0-9 and _, at most 63 characters, and do not start with a digit`,
    );
  }
  return name;
}

const int8 = 20;
const int8Array = 1016;

/** int8 becomes bigint: a JavaScript number would lose digits past 2^53. */
function getTypeParser(oid: number, format?: "text" | "binary") {
  if (format !== "binary") {
    if (oid === int8) return BigInt;
    if (oid === int8Array) return (text: string) => int8ArrayParser(text).map(BigInt);
  }
  return pg.types.getTypeParser(oid, format as "text");
}

const int8ArrayParser = pg.types.getTypeParser(int8Array as number, "text") as (text: string) => string[];
