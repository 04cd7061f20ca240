/**
 * Tokens for calls between services: valid for at most 60 seconds, signed with Ed25519, for one service, and for one user or
 * the calling service itself.
 *
 * A key has the id `<issuer>.<name>`, and an issuer's tokens are accepted only with a key of its own. Several keys may be accepted
 * at once, so that one can be rotated without a pause: add the new one, sign with it, remove the old one.
 */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, randomUUID } from "node:crypto";
import { type JWTPayload, jwtVerify, SignJWT } from "jose";
import { BoundedMap } from "./bounded-map.ts";
import { type Principal, type Role, roles } from "./callers.ts";
import { type Env, readList } from "./env.ts";
import { unauthenticated } from "./problems.ts";
import { storageError } from "./storable-text.ts";

/** The private key of an issuer. */
export interface SigningKey {
  readonly name: string;
  readonly privateKey: KeyObject;
}

/** The public key of an issuer. */
export interface VerifyingKey {
  /** `<issuer>.<name>` */
  readonly id: string;
  readonly publicKey: KeyObject;
}

const tokenSeconds = 60;
const type = "todoke+jwt";

export interface Signer {
  /** A token that is valid for at least half a minute. */
  tokenFor(audience: string, user?: { readonly userId: string; readonly roles: readonly Role[] }): Promise<string>;
}

// The requests of a user come in bursts: within this time they share one signature.
const reuseMs = 20_000;
const cacheMax = 10_000;

export function openSigner({ issuer, key }: { readonly issuer: string; readonly key: SigningKey }): Signer {
  const cache = new BoundedMap<string, { readonly token: Promise<string>; readonly until: number }>(cacheMax);

  const sign = (audience: string, user: { userId: string; roles: readonly Role[] } | undefined): Promise<string> => {
    const token = new SignJWT(user ? { roles: [...user.roles] } : {})
      .setProtectedHeader({ alg: "EdDSA", typ: type, kid: `${issuer}.${key.name}` })
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(`${tokenSeconds} s`)
      .setJti(randomUUID());
    return (user ? token.setSubject(user.userId) : token).sign(key.privateKey);
  };

  return {
    tokenFor(audience, user) {
      const name = JSON.stringify([audience, user?.userId, user?.roles]);
      const now = performance.now();
      const known = cache.get(name);
      if (known && known.until > now) return known.token;
      const token = sign(audience, user);
      cache.set(name, { token, until: now + reuseMs });
      token.catch(() => cache.delete(name)); // A failure is not cached.
      return token;
    },
  };
}

export interface VerifierOptions {
  /** This service: tokens for another are rejected. */
  readonly audience: string;
  readonly keys: readonly VerifyingKey[];
}

export function tokenVerifier({ audience, keys }: VerifierOptions): (token: string) => Principal | Promise<Principal> {
  const byId = new Map(keys.map((key) => [key.id, key.publicKey]));
  // A token is used many times, and stays genuine.
  const verified = new BoundedMap<string, { readonly principal: Principal; readonly until: number }>(cacheMax);

  const keyOf = ({ kid = "" }: { kid?: string }): KeyObject => {
    const key = byId.get(kid);
    if (!key) throw new Error("the key is not known");
    return key;
  };

  async function verify(token: string): Promise<Principal> {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keyOf, {
        algorithms: ["EdDSA"],
        typ: type,
        audience,
        clockTolerance,
        maxTokenAge: tokenSeconds,
        requiredClaims: ["iss", "iat", "exp", "jti"],
      });
      const principal = principalOf(payload, protectedHeader.kid ?? "");
      verified.set(token, { principal, until: (payload.exp ?? 0) * 1_000 });
      return principal;
    } catch (cause) {
      throw unauthenticated("this token is not valid here, or no longer", { cause });
    }
  }

  return (token) => {
    const known = verified.get(token);
    return known && known.until > Date.now() ? known.principal : verify(token);
  };
}

// In seconds: clocks of machines differ a little.
const clockTolerance = 5;
const userIdMax = 128;

function principalOf({ iss, aud, iat = 0, exp = 0, sub, roles: granted }: JWTPayload, kid: string): Principal {
  if (iss !== kid.slice(0, kid.lastIndexOf("."))) throw new Error("the key is another issuer's");
  if (Array.isArray(aud)) throw new Error("it is for more than one service");
  if (exp - iat > tokenSeconds) throw new Error("it lives too long");
  if (sub === undefined) return { kind: "service", name: `service:${iss}` };
  if (!Array.isArray(granted) || !granted.every((role) => roles.includes(role)))
    throw new Error("its roles are not known");
  // It is stored like any text of a request, but no schema of a route has checked it.
  if (sub.length < 1 || sub.length > userIdMax || storageError(sub)) throw new Error("its user id cannot be stored");
  return { kind: "user", name: `user:${sub}`, userId: sub, roles: granted };
}

export function newSigningKey(name: string): SigningKey {
  return { name, privateKey: privateKeyOf(randomBytes(32)) };
}

export function toVerifyingKey(issuer: string, { name, privateKey }: SigningKey): VerifyingKey {
  return { id: `${issuer}.${name}`, publicKey: createPublicKey(privateKey) };
}

// The bytes before the 32 bytes of a key in DER (RFC 8410).
const privatePrefix = Buffer.from("302e020100300506032b657004220420", "hex");
const publicPrefix = Buffer.from("302a300506032b6570032100", "hex");

const privateKeyOf = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([privatePrefix, seed]), format: "der", type: "pkcs8" });

const publicKeyOf = (bytes: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([publicPrefix, bytes]), format: "der", type: "spki" });

/** For GATEWAY_BFF_TOKEN_KEY: `k1=<seed>`. A secret. */
export function formatSigningKey({ name, privateKey }: SigningKey): string {
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(privatePrefix.length);
  return `${name}=${seed.toString("base64url")}`;
}

/** For TODOKE_TOKEN_KEYS: `gateway-bff.k1=<public key>`. */
export function formatVerifyingKey({ id, publicKey }: VerifyingKey): string {
  const bytes = publicKey.export({ format: "der", type: "spki" }).subarray(publicPrefix.length);
  return `${id}=${bytes.toString("base64url")}`;
}

const signingEntry = /^([a-z0-9-]{1,32})=([\w-]{43})$/;
const verifyingEntry = /^([a-z0-9-]{1,64}\.[a-z0-9-]{1,32})=([\w-]{43})$/;

/** Errors never show the value. */
export function readSigningKey(env: Env, variable: string, errors: string[]): SigningKey | undefined {
  const [, name, seed] = signingEntry.exec(env[variable] ?? "") ?? [];
  if (name && seed) return { name, privateKey: privateKeyOf(Buffer.from(seed, "base64url")) };
  errors.push(`${variable} should be <name>=<key>, as \`todoke keys pair\` prints it`);
  return undefined;
}

/** TODOKE_TOKEN_KEYS: the issuers whose tokens are accepted. Without any, only API keys are. */
export function readVerifyingKeys(env: Env, errors: string[]): readonly VerifyingKey[] {
  return readList(env.TODOKE_TOKEN_KEYS).flatMap((text, index) => {
    const [, id, bytes] = verifyingEntry.exec(text) ?? [];
    if (id && bytes) return [{ id, publicKey: publicKeyOf(Buffer.from(bytes, "base64url")) }];
    errors.push(
      `TODOKE_TOKEN_KEYS: entry ${index + 1} should be <service>.<name>=<key>, as \`todoke keys pair\` prints it`,
    );
    return [];
  });
}
