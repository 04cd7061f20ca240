/**
 * Which broker is it? Asked on a connection of its own, because the client library keeps the answer to itself.
 *
 * It matters before the first queue is declared: the setting that lets RabbitMQ 4 keep a message for ever makes RabbitMQ 3
 * throw it away at its first return (topology.ts). The broker greets whoever says "AMQP" with its product and version;
 * we hang up then, which it notes in its log as a client that closed its connection.
 */
import { connect } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";

export interface Server {
  /** "RabbitMQ". */
  readonly product: string;
  /** "3.10.8". */
  readonly version: string;
}

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly tls: ConnectionOptions | undefined;
}

const protocolHeader = Buffer.from([...Buffer.from("AMQP"), 0, 0, 9, 1]);

/** RabbitMQ's greeting has about 600 bytes. */
const greetingBytesMax = 64 * 1024;

export function askServer({ host, port, tls }: Address, timeoutMs: number): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const socket = tls ? connectTls({ host, port, servername: host, ...tls }) : connect({ host, port });
  let received = Buffer.alloc(0);
  socket.setTimeout(timeoutMs, () => reject(new Error(`${host}:${port} did not greet us within ${timeoutMs} ms`)));
  socket.on("error", reject);
  socket.on("close", () => reject(new Error(`${host}:${port} hung up before it greeted us`)));
  socket.on("data", (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    const greeting = wholeFrame(received);
    if (greeting) resolve({ product: textOf(greeting, "product"), version: textOf(greeting, "version") });
    else if (received.length > greetingBytesMax) reject(new Error(`${host}:${port} does not speak AMQP 0-9-1`));
  });
  socket.write(protocolHeader);
  return promise.finally(() => socket.destroy());
}

/** A frame is a type, a channel, a size (7 bytes together), the content, and one byte to end it. */
function wholeFrame(received: Buffer): Buffer | undefined {
  if (received.length < 7) return undefined;
  const end = 7 + received.readUInt32BE(3);
  return received.length > end ? received.subarray(7, end) : undefined;
}

/** An entry of an AMQP table is a length and a name, then "S" for a text, a length of four bytes, and the text. */
function textOf(greeting: Buffer, name: string): string {
  const at = greeting.indexOf(`${String.fromCharCode(name.length)}${name}S`, 0, "latin1");
  if (at < 0) return "unknown";
  const start = at + name.length + 6;
  return greeting.toString("utf8", start, start + greeting.readUInt32BE(start - 4));
}
