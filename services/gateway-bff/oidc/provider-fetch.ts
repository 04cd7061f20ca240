/**
 * Calls the identity provider: every call has a timeout that includes the body, every response a maximum size, with any
 * compression. No redirect is followed, and nothing leaves this machine unencrypted.
 */
import type { CustomFetchOptions } from "openid-client";
import { isSecure } from "../config.ts";
import { readBounded, TooLargeError } from "../upstreams/read-bounded.ts";

export const callTimeoutMs = 5_000;

// Metadata and key sets have a few kilobytes, tokens with many claims about ten.
const responseMaxBytes = 256 * 1024;

/** The provider cannot be reached, or returned 429 or 5xx. A retry may succeed. */
export class ProviderUnavailableError extends Error {
  override readonly name = "ProviderUnavailableError";
}

/** In the form that openid-client and jose expect. */
export async function providerFetch(
  address: string,
  options: Partial<Omit<CustomFetchOptions, "headers">> & { readonly headers?: Record<string, string> | Headers },
): Promise<Response> {
  const url = new URL(address);
  if (!isSecure(url)) throw new Error(`the identity provider is not called at ${url.origin}: https is required`);
  const { status, headers, body } = await fetchBounded(url, options as RequestInit);
  if (status >= 500 || status === 429)
    throw new ProviderUnavailableError(`${url.origin}${url.pathname} returned ${status}`);
  return new Response(body.length > 0 ? body : null, { status, headers });
}

async function fetchBounded(url: URL, options: RequestInit) {
  try {
    const signal = options.signal ?? AbortSignal.timeout(callTimeoutMs);
    const { status, headers, body } = await fetch(url, { ...options, redirect: "manual", signal });
    return { status, headers, body: await readBounded(body, responseMaxBytes) };
  } catch (cause) {
    if (cause instanceof TooLargeError) throw cause;
    throw new ProviderUnavailableError(`${url.origin}${url.pathname} did not respond`, { cause });
  }
}
