/**
 * The identity provider, as the gateway knows it: any OpenID Connect issuer.
 *
 * A log-in is a code flow with PKCE, state and nonce; its answer counts only with the issuer's own signature, for us and for
 * this very log-in (proof.ts). What goes wrong is a Problem that says whether to try again: the provider is away, it
 * refused, or it answered what proves nothing. Its tokens stay on the server, and in no error and no log.
 */
import * as client from "openid-client";
import type { ProviderTokens } from "../sessions/index.ts";
import { type DiscoveryOptions, openDiscovery } from "./discovery.ts";
import { type Exchange, exchangeCode, exchangeRefreshToken, type LoggedIn, type LoginChecks } from "./exchange.ts";
import { isSpent, problemOfProvider, wordsOf } from "./failures.ts";
import { logoutTokenRefused } from "./problems.ts";
import { type EndedThere, openProofs } from "./proof.ts";
import { ProviderAway } from "./provider-fetch.ts";
import { providerKeys } from "./provider-keys.ts";

export interface ProviderOptions extends DiscoveryOptions {
  /** Where the provider sends browsers back to, as it is registered there. */
  readonly redirectUri: string;
  /** What is asked for; some providers give refresh tokens only with `offline_access`. */
  readonly scope?: string;
  /** For what goes wrong without keeping anybody out. */
  readonly onError: (error: unknown) => void;
}

type Refreshed =
  | { readonly kind: "refreshed"; readonly tokens: ProviderTokens }
  /** The provider will never take this refresh token again. */
  | { readonly kind: "over" };

interface BeginOptions {
  /** The provider is to ask who it is, though it may know. */
  readonly interactive?: boolean;
  /** Refuses an answer by which the user has proven it longer ago than this. */
  readonly maxAgeSeconds?: number;
}

export interface Provider {
  /** Where to send the browser, and what to remember. */
  begin(options?: BeginOptions): Promise<LoginChecks & { readonly url: string }>;
  /** Takes the provider's answer, the query of our redirect address, for a log-in that was begun. */
  finish(query: URLSearchParams, checks: LoginChecks): Promise<LoggedIn>;
  /** `beforeCall` runs just before the refresh token is sent; what it throws keeps it from being sent. */
  refresh(tokens: ProviderTokens, beforeCall?: () => void): Promise<Refreshed>;
  /** Where a browser ends its session at the provider too; nothing when the provider has no such place. */
  logoutUrl(returnTo: string): Promise<string | undefined>;
  /** Has the provider forget the tokens of a session that has ended. */
  revoke(tokens: ProviderTokens): Promise<void>;
  /** Takes a back-channel log-out token: who has logged out there. */
  ended(logoutToken: string): Promise<EndedThere & { readonly issuer: string }>;
}

export function openProvider(options: ProviderOptions): Provider {
  const { clientId, redirectUri, scope = "openid profile email", onError } = options;
  const discovery = openDiscovery(options);
  const keysAt = remembered((uri: string) => providerKeys(new URL(uri), options.now));

  async function lastKnown(): Promise<Exchange> {
    const config = await discovery.lastKnown();
    const { issuer, jwks_uri } = config.serverMetadata();
    if (!jwks_uri) throw problemOfProvider(new Error("the identity provider does not say where its keys are"));
    return { config, proofs: openProofs({ issuer, clientId, keys: keysAt(jwks_uri) }), onError };
  }

  return {
    async begin({ interactive = false, maxAgeSeconds } = {}) {
      const config = await discovery.fresh();
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
      const { href: url } = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        ...(interactive && { prompt: "login" }),
        ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
      });
      return { url, state, nonce, verifier, ...(maxAgeSeconds !== undefined && { maxAgeSeconds }) };
    },

    async finish(query, checks) {
      const exchange = await lastKnown();
      try {
        return await exchangeCode(exchange, { ...checks, answer: new URL(`${redirectUri}?${query}`) });
      } catch (error) {
        throw problemOfProvider(error);
      }
    },

    async refresh(tokens, beforeCall = () => undefined) {
      const exchange = await lastKnown();
      try {
        return { kind: "refreshed", tokens: await exchangeRefreshToken(exchange, tokens, beforeCall) };
      } catch (error) {
        if (isSpent(error)) return { kind: "over" };
        throw problemOfProvider(error);
      }
    },

    async logoutUrl(returnTo) {
      const config = await discovery.lastKnown();
      if (!config.serverMetadata().end_session_endpoint) return undefined;
      // No id_token_hint: no token ever reaches the browser. The provider knows its own session by its own cookie.
      return client.buildEndSessionUrl(config, { post_logout_redirect_uri: returnTo }).href;
    },

    async revoke({ refreshToken, accessToken }) {
      const config = await discovery.lastKnown();
      if (!config.serverMetadata().revocation_endpoint) return;
      await client.tokenRevocation(config, refreshToken ?? accessToken).catch((error) => {
        throw wordsOf(error);
      });
    },

    async ended(logoutToken) {
      const { proofs } = await lastKnown();
      try {
        return { issuer: proofs.issuer, ...(await proofs.logoutToken(logoutToken)) };
      } catch (error) {
        if (error instanceof ProviderAway) throw problemOfProvider(error);
        throw logoutTokenRefused("it is not a live log-out token of our identity provider", { cause: wordsOf(error) });
      }
    },
  };
}

/** The last value, for as long as it is asked for by the same name. */
function remembered<T>(make: (name: string) => T): (name: string) => T {
  let last: { readonly name: string; readonly value: T } | undefined;
  return (name) => {
    if (last?.name !== name) last = { name, value: make(name) };
    return last.value;
  };
}
