/** Asks Sentinels where the primary is. */
import { withTimeout } from "@todoke/kernel/worker";
import { createClient } from "redis";
import { type RedisServer, type RedisUrl, tlsOptions } from "./url.ts";

/** Asks all Sentinels at once, so that one that does not respond causes no delay. */
export async function findPrimary(url: RedisUrl, timeoutMs: number): Promise<RedisServer> {
  const [first] = url.servers;
  if (!url.sentinel && first) return first;
  try {
    return await Promise.any(url.servers.map((server) => askSentinel(server, url, timeoutMs)));
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors.map((each: Error) => each.message) : [String(error)];
    throw new Error(`no Sentinel knows the primary: ${reasons.join("; ")}`, { cause: error });
  }
}

async function askSentinel(server: RedisServer, url: RedisUrl, timeoutMs: number): Promise<RedisServer> {
  const { sentinel } = url;
  const client = createClient({
    ...(sentinel?.password && { password: sentinel.password }),
    disableOfflineQueue: true,
    socket: { ...server, ...tlsOptions(url, server.host), connectTimeout: timeoutMs, reconnectStrategy: false },
  });
  client.on("error", () => {}); // connect() or the command rejects with it.
  const name = sentinel?.name ?? "";
  const ask = async () => {
    await client.connect();
    return client.sendCommand(["SENTINEL", "get-master-addr-by-name", name]);
  };
  try {
    // The client's own timeouts do not cover the login: a Sentinel that accepts and does not respond would hold the connection
    // forever.
    const reply = await withTimeout(timeoutMs, ask());
    if (!Array.isArray(reply)) throw new Error(`it does not know "${name}"`);
    return { host: String(reply[0]), port: Number(reply[1]) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${server.host}:${server.port}: ${message}`, { cause: error });
  } finally {
    client.destroy();
  }
}
