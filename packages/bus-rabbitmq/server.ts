/**
 * Reads product and version of the broker, on a connection of its own because the client library does not expose them.
 *
 * They are needed before the first queue is declared: the setting that makes RabbitMQ 4 keep a message without limit makes
 * RabbitMQ 3 drop it at the first requeue (topology.ts). The broker answers the AMQP protocol header with its product and
 * version. We close the connection then, which its log shows as a client that closed its connection.
 */
import { connect } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { serverName } from "@todoke/kernel/server-url";

export interface Server {
  readonly product: string;
  /** "3.10.8" */
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

export function identifyServer({ host, port, tls }: Address, timeoutMs: number): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const socket = tls ? connectTls({ host, port, ...serverName(host), ...tls }) : connect({ host, port });
  let received = Buffer.alloc(0);
  socket.setTimeout(timeoutMs, () => reject(new Error(`${host}:${port} did not answer within ${timeoutMs} ms`)));
  socket.on("error", reject);
  socket.on("close", () => reject(new Error(`${host}:${port} closed the connection before it answered`)));
  socket.on("data", (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    const greeting = readFrame(received);
    if (greeting) resolve({ product: readText(greeting, "product"), version: readText(greeting, "version") });
    else if (received.length > greetingBytesMax) reject(new Error(`${host}:${port} does not speak AMQP 0-9-1`));
  });
  socket.write(protocolHeader);
  return promise.finally(() => socket.destroy());
}

/** A frame is a type, a channel and a size (7 bytes together), the content, and one end byte. */
function readFrame(received: Buffer): Buffer | undefined {
  if (received.length < 7) return undefined;
  const end = 7 + received.readUInt32BE(3);
  return received.length > end ? received.subarray(7, end) : undefined;
}

/** An entry of an AMQP table is a length and a name, then "S" for a string, a length of four bytes, and the string. */
function readText(greeting: Buffer, name: string): string {
  const at = greeting.indexOf(`${String.fromCharCode(name.length)}${name}S`, 0, "latin1");
  if (at < 0) return "unknown";
  const start = at + name.length + 6;
  return greeting.toString("utf8", start, start + greeting.readUInt32BE(start - 4));
}
