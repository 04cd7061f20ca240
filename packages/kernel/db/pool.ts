/** Connection pools with the settings that the kernel is tested with, and connections taken from them. */
import pg from "pg";
import { type ClientClass, clientClass } from "./client.ts";
import { parseDatabaseUrl } from "./database-url.ts";
import { followPrimary } from "./follow-primary.ts";

/** Any node-postgres pool works; `openDb` opens one with the settings that the kernel is tested with. */
export type Db = pg.Pool;

/** Runs statements: a pool (each statement is its own transaction) or a transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;

export interface DbOptions {
  /** The URL of one server, of several (the primary is used), or of PgBouncer: database-url.ts. */
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
const scanSettings = ["enable_seqscan=off", "enable_bitmapscan=off"];

/** A setting of the session, so that it need not pass through every command to the statement that inserts a key. */
export const idempotencySetting = "todoke.idempotency_ms";

/** Opens a pool. Close it with `db.end()`. */
export function openDb(options: DbOptions): Db {
  const { servers, isPooled, settings } = parseDatabaseUrl(options.url);
  const timeouts = timeoutSettings(options);
  const own = ownSettings(options);
  const pooledSettings = [...toList(timeouts), ...scanSettings, ...settingsIn(settings), ...own];
  const pool = new pg.Pool({
    Client: clientClass(options.url, pooledSettings) as ClientClass & (new () => pg.Client),
    application_name: options.applicationName ?? "todoke",
    max: options.poolMax ?? 8,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    // Later than the server's own timeout: for a server that does not respond at all.
    query_timeout: timeouts.statement_timeout + 2_000,
    // PgBouncer refuses these parameters, or ignores them.
    ...(!isPooled && {
      ...timeouts,
      options: [...scanSettings.map(toOption), settings, ...own.map(toOption)].join(" "),
    }),
    types: { getTypeParser },
  });
  // Without a listener, losing an idle connection would end the process.
  pool.on("error", (error) => options.onConnectionError?.(error));
  if (servers.length > 1) followPrimary(pool, servers);
  return pool;
}

const timeoutSettings = (options: DbOptions) => ({
  statement_timeout: options.statementTimeoutMs ?? 10_000,
  lock_timeout: options.lockTimeoutMs ?? 5_000,
  idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 10_000,
});

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

const toOption = (setting: string): string => `-c ${setting}`;

const toList = (settings: Readonly<Record<string, number>>): string[] =>
  Object.entries(settings).map(([name, value]) => `${name}=${value}`);

/** Settings in the URL (`?options=-c …`) come after those of scans and override them; the schema comes last. */
const settingsIn = (options: string): string[] =>
  [...options.matchAll(/(?:-c\s*|--)([a-z_][\w.-]*=[^\s\\;]*)/gi)].map(([, setting = ""]) => setting);

function ownSettings({ schema, idempotencyMs }: DbOptions): string[] {
  return [
    ...(idempotencyMs === undefined ? [] : [`${idempotencySetting}=${Math.ceil(idempotencyMs)}`]),
    ...(schema ? [`search_path=${identifier(schema)}`] : []),
  ];
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
