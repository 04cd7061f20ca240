/**
 * The identity provider, as the gateway knows it: any OpenID Connect issuer.
 *
 * A log-in is a code flow with PKCE, state and nonce; its answer counts only with the issuer's own signature, for us and for
 * this very log-in (proof.ts). What goes wrong is a Problem that says whether to try again: the provider is away, it
 * refused, or it answered what proves nothing. Its tokens stay on the server, and in no error and no log.
 */
import { decodeJwt } from "jose";
import * as client from "openid-client";
import type { ProviderTokens } from "../sessions/index.ts";
import { type DiscoveryOptions, openDiscovery } from "./discovery.ts";
import { isSpent, problemOfProvider, wordsOf } from "./failures.ts";
import { type Claims, saysWho } from "./identity.ts";
import { logoutTokenRefused } from "./problems.ts";
import { type EndedThere, proofs } from "./proof.ts";
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

/** What must be remembered of a log-in until its answer comes. */
interface LoginChecks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Somebody who has proven who they are. */
interface LoggedIn {
  readonly issuer: string;
  readonly subject: string;
  readonly providerSession?: string;
  readonly claims: Claims;
  readonly tokens: ProviderTokens;
}

type Refreshed =
  | { readonly kind: "refreshed"; readonly tokens: ProviderTokens }
  /** The provider will never take this refresh token again. */
  | { readonly kind: "over" };

export interface Provider {
  /** Where to send the browser, and what to remember. */
  begin(): Promise<LoginChecks & { readonly url: string }>;
  /** Takes the provider's answer, the query of our redirect address, for a log-in that was begun. */
  finish(query: URLSearchParams, checks: LoginChecks): Promise<LoggedIn>;
  refresh(tokens: ProviderTokens): Promise<Refreshed>;
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
  const keysAt = remembered((uri: string) => providerKeys(new URL(uri)));

  function proofsOf(config: client.Configuration) {
    const { issuer, jwks_uri } = config.serverMetadata();
    if (!jwks_uri) throw new Error("the identity provider does not say where its keys are");
    return { issuer, ...proofs({ issuer, clientId, keys: keysAt(jwks_uri) }) };
  }

  return {
    async begin() {
      const config = await discovery.fresh();
      const checks = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: "S256",
      });
      return { ...checks, url: url.href };
    },

    async finish(query, { state, nonce, verifier }) {
      const config = await discovery.lastKnown();
      try {
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        };
        const answer = await client.authorizationCodeGrant(config, new URL(`${redirectUri}?${query}`), checks);
        const { issuer, idToken } = proofsOf(config);
        const tokens = tokensOf(answer, undefined);
        const { sub: subject, ...inToken } = await idToken(tokens.idToken);
        const claims = saysWho(inToken)
          ? inToken
          : { ...inToken, ...(await userInfo(config, answer.access_token, subject)) };
        const sid = typeof inToken.sid === "string" && inToken.sid.length <= 255 ? inToken.sid : undefined;
        return { issuer, subject, claims, tokens, ...(sid && { providerSession: sid }) };
      } catch (error) {
        throw problemOfProvider(error);
      }
    },

    async refresh(tokens) {
      const config = await discovery.lastKnown();
      try {
        const answer = await client.refreshTokenGrant(config, tokens.refreshToken ?? "");
        if (answer.id_token) await sameSubject(answer.id_token, tokens);
        return { kind: "refreshed", tokens: tokensOf(answer, tokens) };
      } catch (error) {
        if (isSpent(error)) return { kind: "over" };
        throw problemOfProvider(error);
      }

      async function sameSubject(idToken: string, before: ProviderTokens): Promise<void> {
        const { sub } = await proofsOf(config).idToken(idToken);
        if (sub !== decodeJwt(before.idToken).sub) throw new Error("the refreshed ID token is about somebody else");
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
      const config = await discovery.lastKnown();
      try {
        const { issuer, logoutToken: proven } = proofsOf(config);
        return { issuer, ...(await proven(logoutToken)) };
      } catch (error) {
        if (error instanceof ProviderAway) throw problemOfProvider(error);
        throw logoutTokenRefused("it is not a live log-out token of our identity provider", { cause: wordsOf(error) });
      }
    },
  };

  /** What is for show must not keep anybody out: without it the log-in goes on. */
  async function userInfo(config: client.Configuration, accessToken: string, subject: string): Promise<Claims> {
    if (!config.serverMetadata().userinfo_endpoint) return {};
    try {
      return await client.fetchUserInfo(config, accessToken, subject);
    } catch (error) {
      onError(new Error("the identity provider did not say more of who logged in", { cause: wordsOf(error) }));
      return {};
    }
  }
}

/** What is not given anew stays as it was: a provider need not rotate its refresh tokens. */
function tokensOf(answer: client.TokenEndpointResponse, before: ProviderTokens | undefined): ProviderTokens {
  const refreshToken = answer.refresh_token ?? before?.refreshToken;
  return {
    idToken: answer.id_token ?? before?.idToken ?? "",
    accessToken: answer.access_token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(answer.expires_in !== undefined && { expiresInSeconds: answer.expires_in }),
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
