/** What is exchanged at the provider's token endpoint: a code for who somebody is, and a refresh token for new tokens. */
import { decodeJwt } from "jose";
import * as client from "openid-client";
import type { ProviderTokens } from "../sessions/index.ts";
import { wordsOf } from "./failures.ts";
import { type Claims, saysWho } from "./identity.ts";
import type { Proofs } from "./proof.ts";

/** What must be remembered of a log-in until its answer comes. */
export interface LoginChecks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** The user must have proven who they are at the provider no longer ago than this. */
  readonly maxAgeSeconds?: number;
}

/** Somebody who has proven who they are. */
export interface LoggedIn {
  readonly issuer: string;
  readonly subject: string;
  readonly providerSession?: string;
  /** When they have proven it (`auth_time`), where the provider says so. */
  readonly authenticatedAtMs?: number;
  readonly claims: Claims;
  readonly tokens: ProviderTokens;
}

export interface Exchange {
  readonly config: client.Configuration;
  readonly proofs: Proofs;
  /** For what goes wrong without keeping anybody out. */
  readonly onError: (error: unknown) => void;
}

/** `answer` is our redirect address with what the provider sent the browser back with. */
export async function exchangeCode(
  { config, proofs, onError }: Exchange,
  { answer, state, nonce, verifier, maxAgeSeconds }: LoginChecks & { readonly answer: URL },
): Promise<LoggedIn> {
  const given = await client.authorizationCodeGrant(config, answer, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
    ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }),
  });
  const tokens = tokensOf(given);
  const { sub: subject, ...inToken } = await proofs.idToken(tokens.idToken);
  const more = saysWho(inToken) ? {} : await userInfo({ config, onError, accessToken: given.access_token, subject });
  const { sid, auth_time } = inToken;
  return {
    issuer: proofs.issuer,
    subject,
    claims: { ...inToken, ...more },
    tokens,
    ...(typeof auth_time === "number" && { authenticatedAtMs: auth_time * 1_000 }),
    ...(typeof sid === "string" && sid.length <= 255 && { providerSession: sid }),
  };
}

export async function exchangeRefreshToken(
  { config, proofs }: Exchange,
  before: ProviderTokens,
  beforeCall: () => void,
): Promise<ProviderTokens> {
  beforeCall();
  const given = await client.refreshTokenGrant(config, before.refreshToken ?? "");
  if (given.id_token) {
    const { sub } = await proofs.idToken(given.id_token);
    if (sub !== decodeJwt(before.idToken).sub) throw new Error("the refreshed ID token is about somebody else");
  }
  return tokensOf(given, before);
}

interface Asked extends Pick<Exchange, "config" | "onError"> {
  readonly accessToken: string;
  readonly subject: string;
}

/** What is for show must not keep anybody out: without it the log-in goes on. */
async function userInfo({ config, onError, accessToken, subject }: Asked): Promise<Claims> {
  if (!config.serverMetadata().userinfo_endpoint) return {};
  try {
    return await client.fetchUserInfo(config, accessToken, subject);
  } catch (error) {
    onError(new Error("the identity provider did not say more of who logged in", { cause: wordsOf(error) }));
    return {};
  }
}

/** What is not given anew stays as it was: a provider need not rotate its refresh tokens. */
function tokensOf(given: client.TokenEndpointResponse, before?: ProviderTokens): ProviderTokens {
  const refreshToken = given.refresh_token ?? before?.refreshToken;
  return {
    idToken: given.id_token ?? before?.idToken ?? "",
    accessToken: given.access_token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(given.expires_in !== undefined && { expiresInSeconds: given.expires_in }),
  };
}
