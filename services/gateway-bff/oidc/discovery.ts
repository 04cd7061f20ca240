/**
 * What the identity provider says of itself, read when it is first needed and again every minute that somebody logs in.
 *
 * A provider that is away when the gateway starts stops nothing: log-ins are refused until it is back, and then they work,
 * without a restart. However many wait, one reads; after a failure it rests, so that a provider that comes up is not met
 * by a crowd.
 */
import * as client from "openid-client";
import { unavailable, wordsOf } from "./failures.ts";
import { callTimeoutMs, isLoopback, providerFetch } from "./provider-fetch.ts";

export interface DiscoveryOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

export interface Discovery {
  /** As the provider is now. For a log-in that begins: one that is away is noticed before the browser is sent there. */
  fresh(): Promise<client.Configuration>;
  /** As it was last heard of. For what is under way: the call itself will tell whether the provider is there. */
  lastKnown(): Promise<client.Configuration>;
}

const freshMs = 60_000;
const restSeconds = 1;

// Between the token's signer and us; more would let a stolen token live longer, less would refuse honest clocks.
export const clockToleranceSeconds = 60;

export function openDiscovery(options: DiscoveryOptions): Discovery {
  const { now = () => performance.now() } = options;
  let known: { readonly config: client.Configuration; readonly at: number } | undefined;
  let reading: Promise<client.Configuration> | undefined;
  let restUntil = 0;

  async function read(): Promise<client.Configuration> {
    try {
      const config = await discover(options);
      known = { config, at: now() };
      return config;
    } catch (error) {
      restUntil = now() + restSeconds * 1_000;
      throw unavailable(restSeconds, wordsOf(error));
    } finally {
      reading = undefined;
    }
  }

  async function fresh(): Promise<client.Configuration> {
    if (known && now() - known.at < freshMs) return known.config;
    if (now() < restUntil) throw unavailable(restSeconds);
    reading ??= read();
    return reading;
  }

  return { fresh, lastKnown: async () => known?.config ?? fresh() };
}

function discover({ issuer, clientId, clientSecret }: DiscoveryOptions): Promise<client.Configuration> {
  const server = new URL(issuer);
  const metadata = { [client.clockTolerance]: clockToleranceSeconds };
  return client.discovery(server, clientId, metadata, clientSecret ? withSecret(clientSecret) : client.None(), {
    [client.customFetch]: providerFetch,
    timeout: callTimeoutMs / 1_000,
    // providerFetch lets it go no further than this machine.
    execute: isLoopback(server) ? [client.allowInsecureRequests] : [],
  });
}

/** In the header, as every provider must take it, unless this one says that it does not. */
function withSecret(secret: string): client.ClientAuth {
  const basic = client.ClientSecretBasic(secret);
  const post = client.ClientSecretPost(secret);
  return (server, ...call) => {
    const { token_endpoint_auth_methods_supported: methods } = server;
    const auth = methods === undefined || methods.includes("client_secret_basic") ? basic : post;
    return auth(server, ...call);
  };
}
