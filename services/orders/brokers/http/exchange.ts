/**
 * One request to a broker and its whole reply, with a bound on everything. An error says whether a byte of the request can have
 * been sent: only before there was a connection is that ruled out.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";

export interface Exchange {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

export interface BrokerReply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  /** Proof that the broker received nothing. */
  readonly nothingSent: boolean;

  constructor(message: string, { cause, nothingSent }: { readonly cause: unknown; readonly nothingSent: boolean }) {
    super(message, { cause });
    this.nothingSent = nothingSent;
  }
}

const replyMaxBytes = 1024 * 1024;

/** Keep-alive connections. */
export function openConnections(protocol: string) {
  const options = { keepAlive: true, maxSockets: 64, maxFreeSockets: 8, scheduling: "lifo" } as const;
  return protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
}

export type Connections = ReturnType<typeof openConnections>;

/** Rejects only with ExchangeError. */
export async function exchange(connections: Connections, request: Exchange): Promise<BrokerReply> {
  const { url, method, headers, body, signal } = request;
  let connected = false;
  try {
    signal.throwIfAborted();
    const begin = url.protocol === "https:" ? httpsRequest : httpRequest;
    const request = begin(url, {
      method,
      agent: connections,
      signal,
      maxHeaderSize: 16 * 1024,
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
    });
    request.on("socket", (socket) => {
      // A kept-alive socket accepts bytes at once.
      if (!socket.connecting) connected = true;
      else
        socket.once("connect", () => {
          connected = true;
        });
    });
    const reply = readReply(request);
    request.end(body);
    return await reply;
  } catch (cause) {
    throw new ExchangeError(`no reply from ${url.host} to ${method}`, { cause, nothingSent: !connected });
  }
}

function readReply(request: ReturnType<typeof httpRequest>): Promise<BrokerReply> {
  const { promise, resolve, reject } = Promise.withResolvers<BrokerReply>();
  request.on("error", reject);
  request.once("response", (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on("error", reject);
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > replyMaxBytes) response.destroy(new Error(`the reply is longer than ${replyMaxBytes} bytes`));
    });
    response.once("end", () => {
      if (!response.complete) reject(new Error("the reply ended early"));
      const { statusCode = 0, headers } = response;
      resolve({ status: statusCode, headers, body: Buffer.concat(chunks).toString("utf8") });
    });
    response.once("close", () => reject(new Error("the connection was closed during the reply")));
  });
  return promise;
}
