/** Sends a few bytes to a server and parses its reply. Probes NATS, RabbitMQ and Redis without their client libraries. */
import { connect } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";

export interface ExchangeOptions<T> {
  readonly host: string;
  readonly port: number;
  /** Options of TLS; undefined without TLS. */
  readonly tls?: ConnectionOptions | undefined;
  readonly request?: string | Uint8Array;
  /** Gets all bytes received so far. Returns undefined while the reply is incomplete. May throw. */
  readonly parse: (received: Buffer) => T | undefined;
}

/** On loopback a reply takes a millisecond; elsewhere a slower server is no use. */
const timeoutMs = 5_000;

/** The longest reply, the greeting of RabbitMQ, has about 600 bytes. */
const bytesMax = 64 * 1024;

export function exchange<T>(options: ExchangeOptions<T>): Promise<T> {
  const { host, port, tls, request, parse } = options;
  const server = `${host}:${port}`;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const socket = tls ? connectTls({ host, port, ...tls }) : connect({ host, port });
  let received = Buffer.alloc(0);
  socket.setTimeout(timeoutMs, () => reject(new Error(`no reply from ${server} within ${timeoutMs} ms`)));
  socket.on("error", reject);
  socket.on("close", () => reject(new Error(`${server} closed the connection`)));
  socket.on("data", (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    try {
      const reply = parse(received);
      if (reply !== undefined) resolve(reply);
      else if (received.length > bytesMax) reject(new Error(`${server} does not speak the expected protocol`));
    } catch (error) {
      reject(error);
    }
  });
  if (request !== undefined) socket.write(request);
  return promise.finally(() => socket.destroy());
}

/** The address in a URL, and whether its scheme is that of TLS. */
export function addressOf(url: URL, { defaultPort, tlsScheme }: { defaultPort: number; tlsScheme?: string }) {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { host, port: Number(url.port || defaultPort), ...(url.protocol === tlsScheme && { tls: {} }) };
}
