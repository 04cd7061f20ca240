/**
 * One POST to a place that somebody else runs, with a bound on everything: time, size, and where it may lead.
 *
 * The name is resolved once, every address is looked at, and the connection goes to the one that was looked at: a name
 * that resolves to something else a moment later (DNS rebinding) changes nothing. Redirects are not followed.
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
  /** Lets it lead into our own network. */
  readonly allowPrivate: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** All addresses of a name; the system's answer unless said otherwise. */
  readonly resolve?: Resolve;
}

export type Resolve = (name: string) => Promise<readonly Address[]>;

interface Address {
  readonly address: string;
  readonly family: number;
}

export interface PostAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

// The words of an answer are not read, but a connection can be closed in good order only when they have come.
const answerMaxBytes = 64 * 1024;

/** Resolves with the status, as soon as it is known; rejects when there is none in time. */
export async function httpPost(post: HttpPost): Promise<PostAnswer> {
  const { url, headers, body } = post;
  const bounds = AbortSignal.any([post.signal, AbortSignal.timeout(post.timeoutMs)]);
  const addresses = await within(bounds, vettedAddresses(post));
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = send(url, {
    method: "POST",
    headers: { ...headers, "content-length": Buffer.byteLength(body), connection: "close" },
    lookup: alreadyResolved(addresses),
    // A connection of its own, never from a pool: what was vetted is what is used.
    agent: false,
    signal: bounds,
    maxHeaderSize: 16 * 1024,
  });
  const answer = answerTo(request);
  request.end(body);
  const response = await answer;
  discard(response);
  return { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
}

const bySystem: Resolve = (name) => lookup(name, { all: true });

async function vettedAddresses({ url, allowPrivate, resolve = bySystem }: HttpPost): Promise<readonly Address[]> {
  const name = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = await resolve(name);
  const inside = allowPrivate ? undefined : addresses.find(({ address }) => !isPublicAddress(address));
  if (inside) throw new Error(`${name} is at ${inside.address}, which is not a public address`);
  return addresses;
}

function alreadyResolved(addresses: readonly Address[]): LookupFunction {
  return (_name, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else if (first) callback(null, first.address, first.family);
    else callback(new Error("the name has no address"), "", 0);
  };
}

function answerTo(request: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once("response", resolve);
  // Also after the answer: a connection that breaks then must not end the process.
  request.on("error", reject);
  return promise;
}

/** Takes the rest of the answer up to its bound; past it, or past the time, the connection is cut. */
function discard(response: IncomingMessage): void {
  let bytes = 0;
  response.on("error", () => {});
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > answerMaxBytes) response.destroy();
  });
}

/** A look-up cannot be called off, but nobody has to wait for it. */
function within<T>(bounds: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = () => reject(bounds.reason);
  bounds.addEventListener("abort", late, { once: true });
  if (bounds.aborted) late();
  return Promise.race([work, promise]).finally(() => bounds.removeEventListener("abort", late));
}
