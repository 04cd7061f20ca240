/**
 * Parses the URL of a database: its servers, TLS, and whether it is a PgBouncer.
 *
 *   postgres://user:password@one:5432,two:5432/name   several servers: the one that accepts writes is used
 *   ?sslmode=verify-full&sslrootcert=/ca.pem           TLS, as node-postgres understands it
 *   ?pgbouncer=true                                    PgBouncer in transaction mode; implied by direct_url
 *   ?direct_url=postgres%3A%2F%2F…                     PostgreSQL itself, for wake-ups and migrations
 */
import { parseServerUrl } from "../server-url/index.ts";

export interface DatabaseUrl {
  /** One URL per server, for node-postgres. */
  readonly servers: readonly string[];
  /** From the parameter `options`: "-c geqo=off". */
  readonly settings: string;
  /** Whether a session may get another connection to the server for each transaction. */
  readonly isPooled: boolean;
  /** Where sessions last; undefined if only the pooler is known. */
  readonly directUrl: string | undefined;
}

const ownParameters = ["options", "pgbouncer", "direct_url", "target_session_attrs"];

export function parseDatabaseUrl(url: string): DatabaseUrl {
  const parsed = parseServerUrl(url);
  if (!parsed) throw new Error("the URL of the database is invalid"); // The URL may have a password.
  const { scheme, user, password, hosts, path, parameters } = parsed;
  const direct = parameters.get("direct_url") || undefined;
  const isPooled = direct !== undefined || parameters.get("pgbouncer") === "true";
  const settings = parameters.get("options") ?? "";
  for (const name of ownParameters) parameters.delete(name);
  const credentials = [user, password].filter((part) => part !== "").map(encodeURIComponent);
  const login = credentials.length > 0 ? `${credentials.join(":")}@` : "";
  const query = parameters.size > 0 ? `?${parameters}` : "";
  const servers = (hosts.length > 0 ? hosts : [""]).map((host) => `${scheme}://${login}${host}${path}${query}`);
  return { servers, settings, isPooled, directUrl: isPooled ? direct : url };
}

/** Where LISTEN, session locks and migrations work; undefined if the URL names a pooler only. */
export const directUrlOf = (url: string): string | undefined => parseDatabaseUrl(url).directUrl;
