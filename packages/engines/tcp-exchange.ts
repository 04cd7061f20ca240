/** Sends a few bytes to a server and parses its reply. Probes NATS, RabbitMQ and Redis without their client libraries. */
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";

export interface ExchangeOptions<T> {
  readonly url: URL;
  /** Used if the URL has no port. */
  readonly defaultPort: number;
  readonly tls: boolean;
  readonly request?: string | Uint8Array;
  /** Gets all bytes received so far. Returns undefined while the reply is incomplete. May throw. */
  readonly parse: (received: Buffer) => T | undefined;
}

/** On loopback a reply takes a millisecond; elsewhere a slower server is no use. */
const timeoutMs = 5_000;

/** The longest reply, the greeting of RabbitMQ, has about 600 bytes. */
const bytesMax = 64 * 1024;

export function exchange<T>(options: ExchangeOptions<T>): Promise<T> {
  const { url, request, parse } = options;
  const target = { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || options.defaultPort) };
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const socket = options.tls ? connectTls({ ...target, servername: target.host }) : connect(target);
  let received = Buffer.alloc(0);
  socket.setTimeout(timeoutMs, () => reject(new Error(`no reply from ${url.host} within ${timeoutMs} ms`)));
  socket.on("error", reject);
  socket.on("close", () => reject(new Error(`${url.host} closed the connection`)));
  socket.on("data", (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    try {
      const reply = parse(received);
      if (reply !== undefined) resolve(reply);
      else if (received.length > bytesMax) reject(new Error(`${url.host} does not speak the expected protocol`));
    } catch (error) {
      reject(error);
    }
  });
  if (request !== undefined) socket.write(request);
  return promise.finally(() => socket.destroy());
}
