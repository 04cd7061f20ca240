/** Calls of the provider's token endpoint: a code for a verified identity, and a refresh token for new tokens. */
import { decodeJwt } from "jose";
import * as client from "openid-client";
import type { ProviderTokens } from "../sessions/index.ts";
import { withoutSecrets } from "./failures.ts";
import { type Claims, hasProfileClaims } from "./identity.ts";
import type { TokenVerifiers } from "./token-verifiers.ts";

/** Stored from the start of a login until its response. */
export interface LoginChecks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** The user must have authenticated at the provider within this time. */
  readonly maxAgeSeconds?: number;
}

export interface VerifiedLogin {
  readonly issuer: string;
  readonly subject: string;
  readonly providerSession?: string;
  /** When the user authenticated (`auth_time`), if the provider says so. */
  readonly authenticatedAtMs?: number;
  readonly claims: Claims;
  readonly tokens: ProviderTokens;
}

export interface TokenExchange {
  readonly config: client.Configuration;
  readonly verifiers: TokenVerifiers;
  /** For errors that do not fail the login. */
  readonly onError: (error: unknown) => void;
}

/** `callbackUrl` is our redirect address with the query that the provider added. */
export async function exchangeCode(
  { config, verifiers, onError }: TokenExchange,
  { callbackUrl, state, nonce, verifier, maxAgeSeconds }: LoginChecks & { readonly callbackUrl: URL },
): Promise<VerifiedLogin> {
  const response = await client.authorizationCodeGrant(config, callbackUrl, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
    ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }),
  });
  const tokens = toTokens(response);
  const { sub: subject, ...idClaims } = await verifiers.verifyIdToken(tokens.idToken);
  const profile = hasProfileClaims(idClaims)
    ? {}
    : await fetchProfile({ config, onError, accessToken: response.access_token, subject });
  const { sid, auth_time } = idClaims;
  return {
    issuer: verifiers.issuer,
    subject,
    claims: { ...idClaims, ...profile },
    tokens,
    ...(typeof auth_time === "number" && { authenticatedAtMs: auth_time * 1_000 }),
    ...(typeof sid === "string" && sid.length <= 255 && { providerSession: sid }),
  };
}

export async function exchangeRefreshToken(
  { config, verifiers }: TokenExchange,
  before: ProviderTokens,
  beforeCall: () => void,
): Promise<ProviderTokens> {
  beforeCall();
  const response = await client.refreshTokenGrant(config, before.refreshToken ?? "");
  if (response.id_token) {
    const { sub } = await verifiers.verifyIdToken(response.id_token);
    if (sub !== decodeJwt(before.idToken).sub) throw new Error("the refreshed ID token has another subject");
  }
  return toTokens(response, before);
}

interface ProfileRequest extends Pick<TokenExchange, "config" | "onError"> {
  readonly accessToken: string;
  readonly subject: string;
}

/** A login succeeds without the profile, which is only for display. */
async function fetchProfile({ config, onError, accessToken, subject }: ProfileRequest): Promise<Claims> {
  if (!config.serverMetadata().userinfo_endpoint) return {};
  try {
    return await client.fetchUserInfo(config, accessToken, subject);
  } catch (error) {
    onError(
      new Error("reading the user's profile from the identity provider failed", { cause: withoutSecrets(error) }),
    );
    return {};
  }
}

/** Missing tokens stay as before: a provider need not rotate its refresh tokens. */
function toTokens(response: client.TokenEndpointResponse, before?: ProviderTokens): ProviderTokens {
  const refreshToken = response.refresh_token ?? before?.refreshToken;
  return {
    idToken: response.id_token ?? before?.idToken ?? "",
    accessToken: response.access_token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(response.expires_in !== undefined && { expiresInSeconds: response.expires_in }),
  };
}
