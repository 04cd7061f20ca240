/**
 * Reads `rediss://user:password@host:6379/0?ca_file=/ca.pem`, and `redis://…@one:26379,two:26379/0?sentinel=name`, where the hosts are
 * Sentinels and user and password are those of Redis.
 */
import { parseServerUrl, readTlsFiles, serverName, tlsFilesOf } from "@todoke/kernel/server-url";

export interface RedisServer {
  readonly host: string;
  readonly port: number;
}

export interface RedisUrl {
  /** One, or the Sentinels. */
  readonly servers: readonly RedisServer[];
  readonly login: { readonly username?: string; readonly password?: string };
  readonly database: number;
  /** Undefined without TLS. */
  readonly tls: ReturnType<typeof readTlsFiles> | undefined;
  readonly sentinel: { readonly name: string; readonly password: string | undefined } | undefined;
}

export function parseRedisUrl(text: string): RedisUrl {
  const url = parseServerUrl(text);
  const name = url?.parameters.get("sentinel") || undefined;
  // The URL may contain a password, so the error does not repeat it.
  if (!url || url.hosts.length === 0 || (url.hosts.length > 1 && !name)) throw new Error("the URL of Redis is invalid");
  const defaultPort = name ? 26_379 : 6_379;
  const servers = url.hosts.map((host) => {
    const { hostname, port } = new URL(`x://${host}`);
    return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || defaultPort) };
  });
  return {
    servers,
    login: { ...(url.user && { username: url.user }), ...(url.password && { password: url.password }) },
    database: Number(url.path.slice(1) || 0),
    tls: url.scheme === "rediss" ? readTlsFiles(tlsFilesOf(url)) : undefined,
    sentinel: name ? { name, password: url.parameters.get("sentinel_password") || undefined } : undefined,
  };
}

/** Options of the client's socket. */
export const tlsOptions = ({ tls }: RedisUrl, host: string) =>
  tls ? { tls: true as const, ...serverName(host), ...tls } : {};
