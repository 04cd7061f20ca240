/** A few bytes there and back: how NATS, RabbitMQ and Redis are asked who they are, without a client library. */
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";

export interface Exchange<T> {
  readonly url: URL;
  /** Used when the URL names no port. */
  readonly defaultPort: number;
  readonly tls: boolean;
  readonly hello?: string | Uint8Array;
  /** Looks at all bytes received so far: the answer, or undefined while there is more to come. May throw. */
  readonly read: (received: Buffer) => T | undefined;
}

/** On loopback an answer takes a millisecond; a server elsewhere that is slower than this is no use to a test. */
const waitMs = 5_000;

/** The longest greeting, RabbitMQ's, has about 600 bytes. */
const bytesMax = 64 * 1024;

export function exchange<T>(options: Exchange<T>): Promise<T> {
  const { url, hello, read } = options;
  const target = { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || options.defaultPort) };
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const socket = options.tls ? connectTls({ ...target, servername: target.host }) : connect(target);
  let received = Buffer.alloc(0);
  socket.setTimeout(waitMs, () => reject(new Error(`no answer from ${url.host} within ${waitMs} ms`)));
  socket.on("error", reject);
  socket.on("close", () => reject(new Error(`${url.host} closed the connection`)));
  socket.on("data", (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    try {
      const answer = read(received);
      if (answer !== undefined) resolve(answer);
      else if (received.length > bytesMax) reject(new Error(`${url.host} does not speak the expected protocol`));
    } catch (error) {
      reject(error);
    }
  });
  if (hello !== undefined) socket.write(hello);
  return promise.finally(() => socket.destroy());
}
