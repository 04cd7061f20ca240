/**
 * What an identity provider's tokens prove. An ID token says who has logged in, a log-out token who has logged out there.
 * Each is taken only when it is signed by one of the provider's own keys, with a public-key algorithm, for us, by this
 * issuer, now, and is of the kind that it is presented as.
 *
 * openid-client could check the signature of ID tokens as well, but it looks for a new key only when it has not looked for a
 * minute, and it knows nothing of log-out tokens. So both are checked here, by jose.
 */
import { type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from "jose";
import { clockToleranceSeconds } from "./discovery.ts";

export interface ProofOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly keys: JWTVerifyGetKey;
}

/** Whose session there has ended: one, by its `sid`, or all of a subject. */
export type EndedThere = { readonly jti: string } & (
  | { readonly providerSession: string }
  | { readonly subject: string }
);

// No "none", and nothing with a shared secret: whoever knows the public key could sign with it.
const algorithms = ["RS", "PS", "ES"].flatMap((kind) => [`${kind}256`, `${kind}384`, `${kind}512`]);
const publicKeyAlgorithms = [...algorithms, "EdDSA", "Ed25519"];

// A token that is made for the log-in of this moment; also what makes jose look at `iat` at all.
const idTokenAgeMax = "10 minutes";
const logoutTokenAgeMax = "5 minutes";
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";

export type Proofs = ReturnType<typeof openProofs>;

export function openProofs({ issuer, clientId, keys }: ProofOptions) {
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

    async idToken(token: string): Promise<JWTPayload & { readonly sub: string }> {
      const verified = await verify(token, { maxTokenAge: idTokenAgeMax, requiredClaims: ["sub", "exp"] });
      refuseOtherKinds(verified, ["jwt"]);
      const { sub, azp } = verified.payload;
      // openid-client looks at it only where there are several audiences.
      if (azp !== undefined && azp !== clientId) throw new Error("the ID token was made for another client");
      return { ...verified.payload, sub: nameIn(sub, "sub") };
    },

    async logoutToken(token: string): Promise<EndedThere> {
      const verified = await verify(token, { maxTokenAge: logoutTokenAgeMax, requiredClaims: ["jti"] });
      refuseOtherKinds(verified, ["jwt", "logout+jwt"]);
      const { jti, sid, sub, nonce, events } = verified.payload;
      // Both keep an ID token, which a browser may have seen, from passing as a log-out.
      if (nonce !== undefined) throw new Error("a log-out token has no nonce");
      if (!Object.hasOwn(Object(events), logoutEvent))
        throw new Error("the token does not say that somebody logged out");
      const once = { jti: nameIn(jti, "jti") };
      if (sid !== undefined) return { ...once, providerSession: nameIn(sid, "sid") };
      return { ...once, subject: nameIn(sub, "sub") };
    },
  };
}

function refuseOtherKinds({ protectedHeader: { typ = "JWT" } }: JWTVerifyResult, kinds: readonly string[]): void {
  const kind = typ.toLowerCase().replace(/^application\//, "");
  if (!kinds.includes(kind)) throw new Error("the token is of another kind");
}

/** OpenID Connect bounds a subject to 255 ASCII characters; what cannot be kept as it is names nobody. */
function nameIn(claim: unknown, name: string): string {
  if (typeof claim === "string" && /^[\x20-\x7e]{1,255}$/.test(claim)) return claim;
  throw new Error(`the claim ${name} is missing, or is no text of 1 to 255 ASCII characters`);
}
