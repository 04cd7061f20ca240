/**
 * One request to a broker and its whole answer, with a bound on everything. What failed says whether a byte of the
 * request can have left: only before a connection was there is that certainly not so.
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

export interface BrokerAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export class ExchangeFailed extends Error {
  override readonly name = "ExchangeFailed";
  /** Proof that the broker has nothing of it. */
  readonly nothingLeft: boolean;

  constructor(message: string, { cause, nothingLeft }: { readonly cause: unknown; readonly nothingLeft: boolean }) {
    super(message, { cause });
    this.nothingLeft = nothingLeft;
  }
}

const answerMaxBytes = 1024 * 1024;

/** Connections that are kept for the next request. */
export function openConnections(protocol: string) {
  const options = { keepAlive: true, maxSockets: 64, maxFreeSockets: 8, scheduling: "lifo" } as const;
  return protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
}

export type Connections = ReturnType<typeof openConnections>;

/** Rejects with ExchangeFailed, and nothing else. */
export async function exchange(connections: Connections, wanted: Exchange): Promise<BrokerAnswer> {
  const { url, method, headers, body, signal } = wanted;
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
      // One that is kept from before takes bytes at once.
      if (!socket.connecting) connected = true;
      else
        socket.once("connect", () => {
          connected = true;
        });
    });
    const answer = answerTo(request);
    request.end(body);
    return await answer;
  } catch (cause) {
    throw new ExchangeFailed(`${url.host} did not answer ${method}`, { cause, nothingLeft: !connected });
  }
}

function answerTo(request: ReturnType<typeof httpRequest>): Promise<BrokerAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<BrokerAnswer>();
  request.on("error", reject);
  request.once("response", (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on("error", reject);
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > answerMaxBytes) response.destroy(new Error(`the answer is longer than ${answerMaxBytes} bytes`));
    });
    response.once("end", () => {
      if (!response.complete) reject(new Error("the answer ended before it was whole"));
      const { statusCode = 0, headers } = response;
      resolve({ status: statusCode, headers, body: Buffer.concat(chunks).toString("utf8") });
    });
    response.once("close", () => reject(new Error("the connection was closed within the answer")));
  });
  return promise;
}
