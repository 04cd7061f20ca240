/**
 * How the gateway calls the identity provider: every call ends in time, body included; every answer is bounded, however it
 * is compressed; no redirect is followed; nothing goes out in the clear but to this machine itself.
 */
import type { CustomFetchOptions } from "openid-client";

export const callTimeoutMs = 5_000;

// Metadata and key sets are some kilobytes, tokens with many claims some ten.
const answerMaxBytes = 256 * 1024;

/** The provider cannot be reached, or says itself that it is not well. It may be over in a moment. */
export class ProviderAway extends Error {
  override readonly name = "ProviderAway";
}

export const isLoopback = ({ hostname }: URL): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);

/** Of the form that openid-client and jose take. */
export async function providerFetch(
  address: string,
  options: Partial<Omit<CustomFetchOptions, "headers">> & { readonly headers?: Record<string, string> | Headers },
): Promise<Response> {
  const url = new URL(address);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url))) {
    throw new Error(`the identity provider is not called at ${url.origin}: it needs https`);
  }
  const { status, headers, body } = await bounded(url, options as RequestInit);
  if (status >= 500 || status === 429) throw new ProviderAway(`${url.origin}${url.pathname} answered ${status}`);
  return new Response(body.length > 0 ? body : null, { status, headers });
}

async function bounded(url: URL, options: RequestInit) {
  try {
    const signal = options.signal ?? AbortSignal.timeout(callTimeoutMs);
    const { status, headers, body } = await fetch(url, { ...options, redirect: "manual", signal });
    return { status, headers, body: await read(body) };
  } catch (cause) {
    if (cause instanceof AnswerTooLarge) throw cause;
    throw new ProviderAway(`${url.origin}${url.pathname} did not answer`, { cause });
  }
}

class AnswerTooLarge extends Error {}

/** Leaving the loop early closes the connection: the rest is never received. */
async function read(body: ReadableStream<Uint8Array> | null): Promise<Buffer<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body ?? []) {
    size += part.length;
    if (size > answerMaxBytes) throw new AnswerTooLarge(`the answer is larger than ${answerMaxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
