/** Reads "nats://user:password@one:4222,two:4222": who we are, and the servers of a cluster. */
import type { ConnectionOptions } from "@nats-io/transport-node";

export function serversAt(url: string): ConnectionOptions {
  const urls = url.split(",").map((server) => URL.parse(server.includes("://") ? server : `nats://${server}`));
  const [first] = urls;
  const hosts = urls.map((server) => server?.host ?? "");
  // The address may hold a password: it is not repeated here.
  if (!first || hosts.includes("")) throw new Error("the address of the NATS server cannot be read");
  const { username, password, protocol } = first;
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  return {
    servers: hosts,
    ...(user !== "" && pass !== "" && { user, pass }),
    ...(user !== "" && pass === "" && { token: user }),
    ...(protocol === "tls:" && { tls: {} }),
  };
}
