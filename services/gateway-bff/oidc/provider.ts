/**
 * The identity provider: any OpenID Connect issuer.
 *
 * A login is a code flow with PKCE, state and nonce. Its response counts only if the issuer signed it for us and for this
 * login (token-verifiers.ts). Failures are Problems that say whether to retry. The provider's tokens stay on the server and
 * appear in no error and no log.
 */
import * as client from "openid-client";
import { logoutTokenRefused } from "../problems.ts";
import type { ProviderTokens } from "../sessions/index.ts";
import { type DiscoveryOptions, openDiscovery } from "./discovery.ts";
import {
  exchangeCode,
  exchangeRefreshToken,
  type LoginChecks,
  type TokenExchange,
  type VerifiedLogin,
} from "./exchange.ts";
import { isInvalidGrant, toProviderProblem, withoutSecrets } from "./failures.ts";
import { ProviderUnavailableError } from "./provider-fetch.ts";
import { providerKeys } from "./provider-keys.ts";
import { type EndedLogin, tokenVerifiers } from "./token-verifiers.ts";

export interface ProviderOptions extends DiscoveryOptions {
  /** Where the provider sends browsers back to, as registered there. */
  readonly redirectUri: string;
  /** For errors that do not fail a login. */
  readonly onError: (error: unknown) => void;
}

// Some providers issue refresh tokens only for `offline_access`; without one a session lives its own time.
const scope = "openid profile email";

type RefreshResult =
  | { readonly kind: "refreshed"; readonly tokens: ProviderTokens }
  /** The provider will never accept this refresh token again. */
  | { readonly kind: "refused" };

interface BeginOptions {
  /** The provider must ask for credentials even if it knows the user. */
  readonly interactive?: boolean;
  /** Rejects a response if the user authenticated longer ago than this. */
  readonly maxAgeSeconds?: number;
}

export interface Provider {
  /** Returns the address for the browser, and the values to store until the response. */
  begin(options?: BeginOptions): Promise<LoginChecks & { readonly url: string }>;
  /** Verifies the provider's response, the query of our redirect address. */
  finish(query: URLSearchParams, checks: LoginChecks): Promise<VerifiedLogin>;
  /** Calls `beforeCall` just before the refresh token is sent; if it throws, the token is not sent. */
  refresh(tokens: ProviderTokens, beforeCall?: () => void): Promise<RefreshResult>;
  /** Where a browser ends its session at the provider; undefined if the provider does not support it. */
  logoutUrl(returnTo: string): Promise<string | undefined>;
  /** Revokes the tokens of an ended session. */
  revoke(tokens: ProviderTokens): Promise<void>;
  /** Verifies a back-channel logout token. */
  verifyLogout(logoutToken: string): Promise<EndedLogin & { readonly issuer: string }>;
}

export function openProvider(options: ProviderOptions): Provider {
  const { clientId, redirectUri, onError } = options;
  const discovery = openDiscovery(options);
  const keysAt = memoizeLast((uri: string) => providerKeys(new URL(uri), options.now));

  async function openExchange(): Promise<TokenExchange> {
    const config = await discovery.cached();
    const { issuer, jwks_uri } = config.serverMetadata();
    if (!jwks_uri) throw toProviderProblem(new Error("the identity provider's metadata has no jwks_uri"));
    return { config, verifiers: tokenVerifiers({ issuer, clientId, keys: keysAt(jwks_uri) }), onError };
  }

  return {
    async begin({ interactive = false, maxAgeSeconds } = {}) {
      const config = await discovery.current();
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
      const exchange = await openExchange();
      try {
        return await exchangeCode(exchange, { ...checks, callbackUrl: new URL(`${redirectUri}?${query}`) });
      } catch (error) {
        throw toProviderProblem(error);
      }
    },

    async refresh(tokens, beforeCall = () => undefined) {
      const exchange = await openExchange();
      try {
        return { kind: "refreshed", tokens: await exchangeRefreshToken(exchange, tokens, beforeCall) };
      } catch (error) {
        if (isInvalidGrant(error)) return { kind: "refused" };
        throw toProviderProblem(error);
      }
    },

    async logoutUrl(returnTo) {
      const config = await discovery.cached();
      if (!config.serverMetadata().end_session_endpoint) return undefined;
      // No id_token_hint, because no token may reach the browser. The provider knows its session by its own cookie.
      return client.buildEndSessionUrl(config, { post_logout_redirect_uri: returnTo }).href;
    },

    async revoke({ refreshToken, accessToken }) {
      const config = await discovery.cached();
      if (!config.serverMetadata().revocation_endpoint) return;
      await client.tokenRevocation(config, refreshToken ?? accessToken).catch((error) => {
        throw withoutSecrets(error);
      });
    },

    async verifyLogout(logoutToken) {
      const { verifiers } = await openExchange();
      try {
        return { issuer: verifiers.issuer, ...(await verifiers.verifyLogoutToken(logoutToken)) };
      } catch (error) {
        if (error instanceof ProviderUnavailableError) throw toProviderProblem(error);
        const cause = withoutSecrets(error);
        throw logoutTokenRefused("it is not a valid logout token of our identity provider", { cause });
      }
    },
  };
}

/** Keeps the value of the last argument. */
function memoizeLast<T>(make: (argument: string) => T): (argument: string) => T {
  let last: { readonly argument: string; readonly value: T } | undefined;
  return (argument) => {
    if (last?.argument !== argument) last = { argument, value: make(argument) };
    return last.value;
  };
}
