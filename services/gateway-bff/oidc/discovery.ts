/**
 * The identity provider's metadata, read at the first login and again when it is older than a minute.
 *
 * The gateway starts without the provider: logins are refused until it is reachable and then work without a restart.
 * Concurrent logins share one read, and after a failure reads pause, so that a starting provider is not overrun.
 */
import * as client from "openid-client";
import { isLoopback } from "../config.ts";
import { providerUnavailable, withoutSecrets } from "./failures.ts";
import { callTimeoutMs, providerFetch } from "./provider-fetch.ts";

export interface DiscoveryOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

export interface Discovery {
  /** For a new login: notices an unavailable provider before the browser is sent there. */
  current(): Promise<client.Configuration>;
  /** For everything else: the following call shows whether the provider is reachable. */
  cached(): Promise<client.Configuration>;
}

const ageMaxMs = 60_000;
const pauseSeconds = 1;

// Between the provider's clock and ours. More would let a stolen token live longer, less would refuse honest clocks.
export const clockToleranceSeconds = 60;

export function openDiscovery(options: DiscoveryOptions): Discovery {
  const { now = () => performance.now() } = options;
  let last: { readonly config: client.Configuration; readonly at: number } | undefined;
  let reading: Promise<client.Configuration> | undefined;
  let pausedUntil = 0;

  async function read(): Promise<client.Configuration> {
    try {
      const config = await discover(options);
      last = { config, at: now() };
      return config;
    } catch (error) {
      pausedUntil = now() + pauseSeconds * 1_000;
      throw providerUnavailable(pauseSeconds, withoutSecrets(error));
    } finally {
      reading = undefined;
    }
  }

  async function current(): Promise<client.Configuration> {
    if (last && now() - last.at < ageMaxMs) return last.config;
    if (now() < pausedUntil) throw providerUnavailable(pauseSeconds);
    reading ??= read();
    return reading;
  }

  return { current, cached: async () => last?.config ?? current() };
}

function discover({ issuer, clientId, clientSecret }: DiscoveryOptions): Promise<client.Configuration> {
  const server = new URL(issuer);
  const metadata = { [client.clockTolerance]: clockToleranceSeconds };
  return client.discovery(server, clientId, metadata, clientSecret ? withSecret(clientSecret) : client.None(), {
    [client.customFetch]: providerFetch,
    timeout: callTimeoutMs / 1_000,
    // providerFetch refuses plain http to any other machine.
    execute: isLoopback(server) ? [client.allowInsecureRequests] : [],
  });
}

/** Sent in the header, which every provider must support, unless this one's metadata excludes it. */
function withSecret(secret: string): client.ClientAuth {
  const basic = client.ClientSecretBasic(secret);
  const post = client.ClientSecretPost(secret);
  return (server, ...call) => {
    const { token_endpoint_auth_methods_supported: methods } = server;
    const auth = methods === undefined || methods.includes("client_secret_basic") ? basic : post;
    return auth(server, ...call);
  };
}
