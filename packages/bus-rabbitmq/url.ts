/** Reads `amqps://user:password@one:5671,two:5671/vhost?ca_file=/ca.pem`: the nodes, TLS and names of a URL. */
import type { ConnectionOptions as TlsOptions } from "node:tls";
import { parseServerUrl, readTlsFiles, serverName, tlsFilesOf } from "@todoke/kernel/server-url";

export interface RabbitmqUrl {
  /** The URL of the first node, for the client library. */
  readonly url: string;
  /** All nodes, if there are several. */
  readonly hosts?: readonly string[];
  readonly tls?: TlsOptions;
  readonly namespace?: string;
  readonly queues?: Readonly<Record<string, string>>;
}

const ownParameters = ["ca_file", "cert_file", "key_file", "namespace", "queues"];

export function parseRabbitmqUrl(text: string): RabbitmqUrl {
  const parsed = parseServerUrl(text);
  // The URL may contain a password, so the error does not repeat it.
  if (!parsed || parsed.hosts.length === 0) throw new Error("the URL of RabbitMQ is invalid");
  const { scheme, user, password, hosts, path, parameters } = parsed;
  // By default the client library sends no server name, and it can send only one.
  const name = hosts.length === 1 ? serverName(new URL(`x://${hosts[0]}`).hostname) : {};
  const tls = scheme === "amqps" ? { ...name, ...readTlsFiles(tlsFilesOf(parsed)) } : {};
  const [namespace, queues] = [parameters.get("namespace"), parameters.get("queues")];
  for (const name of ownParameters) parameters.delete(name);
  const login = user === "" ? "" : `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
  const query = parameters.size > 0 ? `?${parameters}` : "";
  return {
    url: `${scheme}://${login}${hosts[0]}${path}${query}`,
    ...(hosts.length > 1 && { hosts }),
    ...(Object.keys(tls).length > 0 && { tls }),
    ...(namespace && { namespace }),
    ...(queues && { queues: parseQueues(queues) }),
  };
}

/** "points:reservationQueue,notification:notify" */
function parseQueues(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(",").map((entry) => {
      const [consumer = "", queue = "", ...rest] = entry.split(":").map((part) => part.trim());
      if (consumer === "" || queue === "" || rest.length > 0)
        throw new Error(`"${entry}" in the queue names should look like consumer:queue`);
      return [consumer, queue];
    }),
  );
}
