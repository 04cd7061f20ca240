/** Parses "nats://user:password@one:4222,two:4222": credentials and the servers of a cluster. */
import type { ConnectionOptions } from "@nats-io/transport-node";

export function parseServers(url: string): ConnectionOptions {
  const urls = url.split(",").map((server) => URL.parse(server.includes("://") ? server : `nats://${server}`));
  const [first] = urls;
  const hosts = urls.map((server) => server?.host ?? "");
  // The URL may contain a password, so the error does not repeat it.
  if (!first || hosts.includes("")) throw new Error("the URL of the NATS server is invalid");
  const { username, password, protocol } = first;
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  return {
    servers: hosts,
    ...(user !== "" && pass !== "" && { user, pass }),
    ...(user !== "" && pass === "" && { token: user }),
    ...(protocol === "tls:" && { tls: {} }),
  };
}
