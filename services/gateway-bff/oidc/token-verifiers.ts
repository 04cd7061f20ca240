/**
 * Verifies an identity provider's tokens: ID tokens of logins and logout tokens. A token is accepted only if one of the
 * provider's keys signed it with a public-key algorithm, for us, recently, and it is of the expected kind.
 *
 * openid-client could verify ID tokens, but it looks for a new key at most once a minute, and it does not know logout
 * tokens. So jose verifies both.
 */
import { type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from "jose";
import { clockToleranceSeconds } from "./discovery.ts";

export interface TokenVerifierOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly keys: JWTVerifyGetKey;
}

/** One session that ended at the provider, by its `sid`, or all sessions of a subject. */
export type EndedLogin = { readonly jti: string } & (
  | { readonly providerSession: string }
  | { readonly subject: string }
);

// Neither "none" nor a shared secret: the public key would be enough to sign.
const algorithms = ["RS", "PS", "ES"].flatMap((kind) => [`${kind}256`, `${kind}384`, `${kind}512`]);
const publicKeyAlgorithms = [...algorithms, "EdDSA", "Ed25519"];

// Only recent tokens. Without a maximum age jose would not check `iat` at all.
const idTokenAgeMax = "10 minutes";
const logoutTokenAgeMax = "5 minutes";
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";

export type TokenVerifiers = ReturnType<typeof tokenVerifiers>;

export function tokenVerifiers({ issuer, clientId, keys }: TokenVerifierOptions) {
  const verify = (
    token: string,
    more: Pick<JWTVerifyOptions, "maxTokenAge" | "requiredClaims">,
  ): Promise<JWTVerifyResult> =>
    jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      algorithms: publicKeyAlgorithms,
      clockTolerance: clockToleranceSeconds,
      ...more,
    });

  return {
    issuer,

    async verifyIdToken(token: string): Promise<JWTPayload & { readonly sub: string }> {
      const verified = await verify(token, { maxTokenAge: idTokenAgeMax, requiredClaims: ["sub", "exp"] });
      rejectOtherKinds(verified, ["jwt"]);
      const { sub, azp } = verified.payload;
      // openid-client checks it only if there are several audiences.
      if (azp !== undefined && azp !== clientId) throw new Error("the ID token is for another client");
      return { ...verified.payload, sub: nameClaim(sub, "sub") };
    },

    async verifyLogoutToken(token: string): Promise<EndedLogin> {
      const verified = await verify(token, { maxTokenAge: logoutTokenAgeMax, requiredClaims: ["jti"] });
      rejectOtherKinds(verified, ["jwt", "logout+jwt"]);
      const { jti, sid, sub, nonce, events } = verified.payload;
      // Both checks keep an ID token, which a browser may have seen, from passing as a logout token.
      if (nonce !== undefined) throw new Error("a logout token must not have a nonce");
      if (!Object.hasOwn(Object(events), logoutEvent)) throw new Error("the token has no logout event");
      const id = { jti: nameClaim(jti, "jti") };
      if (sid !== undefined) return { ...id, providerSession: nameClaim(sid, "sid") };
      return { ...id, subject: nameClaim(sub, "sub") };
    },
  };
}

function rejectOtherKinds({ protectedHeader: { typ = "JWT" } }: JWTVerifyResult, kinds: readonly string[]): void {
  const kind = typ.toLowerCase().replace(/^application\//, "");
  if (!kinds.includes(kind)) throw new Error("the token is of another kind");
}

/** OpenID Connect limits a subject to 255 ASCII characters. */
function nameClaim(claim: unknown, name: string): string {
  if (typeof claim === "string" && /^[\x20-\x7e]{1,255}$/.test(claim)) return claim;
  throw new Error(`the claim ${name} is missing, or not a text of 1 to 255 ASCII characters`);
}
