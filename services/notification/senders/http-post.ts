/**
 * One POST to an external URL, with a bound on its time, its size and its target.
 *
 * The name is resolved once, every address is checked, and the connection uses a checked address: a name that resolves to
 * another address a moment later (DNS rebinding) changes nothing. Redirects are not followed.
 */
import { lookup } from "node:dns/promises";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { isPublicAddress } from "./public-address.ts";

export interface HttpPost {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Allows addresses that are not public. */
  readonly allowPrivate: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Resolves a name to all its addresses; the system's resolver by default. */
  readonly resolve?: Resolve;
}

export type Resolve = (name: string) => Promise<readonly Address[]>;

interface Address {
  readonly address: string;
  readonly family: number;
}

export interface PostResponse {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

// The body of the response is ignored, but it has to be received before the connection can close cleanly.
const responseMaxBytes = 64 * 1024;

/** Resolves with the status as soon as it is received; rejects if there is none in time. */
export async function httpPost(post: HttpPost): Promise<PostResponse> {
  const { url, headers, body } = post;
  const bounds = AbortSignal.any([post.signal, AbortSignal.timeout(post.timeoutMs)]);
  const addresses = await abortable(bounds, resolveChecked(post));
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = send(url, {
    method: "POST",
    headers: { ...headers, "content-length": Buffer.byteLength(body), connection: "close" },
    lookup: fixedLookup(addresses),
    // A new connection, because a pooled one may lead to an address that was not checked.
    agent: false,
    signal: bounds,
    maxHeaderSize: 16 * 1024,
  });
  const responding = responseTo(request);
  request.end(body);
  const response = await responding;
  discard(response);
  return { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
}

const systemResolve: Resolve = (name) => lookup(name, { all: true });

async function resolveChecked({ url, allowPrivate, resolve = systemResolve }: HttpPost): Promise<readonly Address[]> {
  const name = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = await resolve(name);
  const internal = allowPrivate ? undefined : addresses.find(({ address }) => !isPublicAddress(address));
  if (internal) throw new Error(`${name} resolves to ${internal.address}, which is not a public address`);
  return addresses;
}

function fixedLookup(addresses: readonly Address[]): LookupFunction {
  return (_name, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else if (first) callback(null, first.address, first.family);
    else callback(new Error("the name has no address"), "", 0);
  };
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once("response", resolve);
  // Not `once`: a connection that breaks after the response must not crash the process.
  request.on("error", reject);
  return promise;
}

/** Receives the rest of the response. Beyond the size or time limit the connection is destroyed. */
function discard(response: IncomingMessage): void {
  let bytes = 0;
  response.on("error", () => {});
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > responseMaxBytes) response.destroy();
  });
}

/** Stops waiting at the abort. A DNS lookup itself cannot be cancelled. */
function abortable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", abort));
}
