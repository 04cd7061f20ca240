import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { SignJWT } from "jose";
import { expect, test, vi } from "vitest";
import {
  formatSigningKey,
  formatVerifyingKey,
  newSigningKey,
  openSigner,
  readSigningKey,
  readVerifyingKeys,
  tokenVerifier,
  toVerifyingKey,
} from "./tokens.ts";

const key = newSigningKey("k1");
const known = toVerifyingKey("gateway-bff", key);
const verify = tokenVerifier({ audience: "account", keys: [known] });
const alice = { userId: "alice", roles: ["USER"] as const };
const tokenFor = (audience: string, user?: typeof alice) =>
  openSigner({ issuer: "gateway-bff", key }).tokenFor(audience, user);

test("a token identifies its user, or its service if it has none", async () => {
  const user = { kind: "user", name: "user:alice", userId: "alice", roles: ["USER"] };
  expect(await verify(await tokenFor("account", alice))).toEqual(user);
  expect(await verify(await tokenFor("account"))).toEqual({ kind: "service", name: "service:gateway-bff" });
});

test("a burst of one user shares one signature", async () => {
  const signer = openSigner({ issuer: "gateway-bff", key });
  const first = await signer.tokenFor("account", alice);
  expect(await signer.tokenFor("account", alice)).toBe(first);
  expect(await signer.tokenFor("points", alice)).not.toBe(first);
  expect(await signer.tokenFor("account", { ...alice, userId: "bob" })).not.toBe(first);
  expect(await signer.tokenFor("account", { ...alice, roles: ["USER", "ADMIN"] })).not.toBe(first);
});

test("a token for another service is rejected", async () => {
  await expect(async () => verify(await tokenFor("points", alice))).rejects.toMatchObject({ status: 401 });
});

test("a key is rotated without a pause: both are accepted until the old one is removed", async () => {
  const next = newSigningKey("k2");
  const both = tokenVerifier({ audience: "account", keys: [known, toVerifyingKey("gateway-bff", next)] });
  const after = tokenVerifier({ audience: "account", keys: [toVerifyingKey("gateway-bff", next)] });
  const [old, fresh] = [
    await tokenFor("account", alice),
    await openSigner({ issuer: "gateway-bff", key: next }).tokenFor("account", alice),
  ];
  for (const token of [old, fresh]) expect(await both(token)).toMatchObject({ userId: "alice" });
  expect(await after(fresh)).toMatchObject({ userId: "alice" });
  await expect(async () => after(old)).rejects.toMatchObject({ status: 401 });
});

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

interface Forgery {
  readonly header?: object;
  readonly claims?: object;
  readonly key?: KeyObject;
  readonly seconds?: number;
  /** Seconds from now to its beginning. */
  readonly at?: number;
}

/** A token that only differs from a good one in what is given; put together by hand, for no library makes these. */
function forged({ header, claims, key: by = key.privateKey, seconds = 60, at = 0 }: Forgery): string {
  const iat = Math.floor(Date.now() / 1_000) + at;
  const good = { iss: "gateway-bff", aud: "account", sub: "alice", roles: ["USER"], iat, exp: iat + seconds };
  const head = part({ alg: "EdDSA", typ: "todoke+jwt", kid: "gateway-bff.k1", ...header });
  const signed = `${head}.${part({ ...good, jti: randomUUID(), ...claims })}`;
  return `${signed}.${sign(null, Buffer.from(signed), by).toString("base64url")}`;
}

test("the token that the next tests forge is valid", async () => {
  expect(await verify(forged({}))).toMatchObject({ userId: "alice" });
});

const otherKey = newSigningKey("k1").privateKey;

test.each<[string, Forgery]>([
  ["signed by another key", { key: otherKey }],
  ["of an unknown key", { header: { kid: "gateway-bff.k9" } }],
  ["of a key with a path for a name", { header: { kid: "../../etc/passwd" } }],
  ["of an issuer that the key is not of", { claims: { iss: "account" } }],
  ["of another type", { header: { typ: "JWT" } }],
  ["with a critical header that nobody knows", { header: { crit: ["urgent"], urgent: true } }],
  ["for two services", { claims: { aud: ["account", "points"] } }],
  ["that has ended", { at: -70 }],
  ["that begins in the future", { at: 30 }],
  ["that lives for an hour", { seconds: 3_600 }],
  ["without an end", { claims: { exp: undefined } }],
  ["without an id", { claims: { jti: undefined } }],
  ["with a role that nobody knows", { claims: { roles: ["ROOT"] } }],
  ["with a role that is not in a list", { claims: { roles: "ADMIN" } }],
  ["of a user without a name", { claims: { sub: "" } }],
  ["of a user whose name no database keeps", { claims: { sub: "al\0ice" } }],
  ["of a user with an endless name", { claims: { sub: "a".repeat(129) } }],
  ["of a user without roles", { claims: { roles: undefined } }],
])("a token %s is rejected", async (_what, changed) => {
  await expect(async () => verify(forged(changed))).rejects.toMatchObject({ status: 401 });
});

test.each(["none", "None", "nOnE", "HS256", "RS256"])("alg %s is rejected", async (alg) => {
  const [, claims = ""] = forged({}).split(".");
  const token = `${part({ alg, typ: "todoke+jwt", kid: "gateway-bff.k1" })}.${claims}.${alg === "none" ? "" : "AAAA"}`;
  await expect(async () => verify(token)).rejects.toMatchObject({ status: 401 });
});

test("a token of another key type is rejected", async () => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const token = await new SignJWT({}).setProtectedHeader({ alg: "RS256", kid: "gateway-bff.k1" }).sign(rsa.privateKey);
  await expect(async () => verify(token)).rejects.toMatchObject({ status: 401 });
});

test("a verified token is rejected after it expires", async () => {
  const token = forged({});
  expect(await verify(token)).toMatchObject({ userId: "alice" });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 70_000 });
  try {
    await expect(async () => verify(token)).rejects.toMatchObject({ status: 401 });
  } finally {
    vi.useRealTimers();
  }
});

test("keys survive formatting and parsing", () => {
  const faults: string[] = [];
  const env = { KEY: formatSigningKey(key), TODOKE_TOKEN_KEYS: `${formatVerifyingKey(known)}, ` };
  const read = readSigningKey(env, "KEY", faults);
  expect(read?.privateKey.equals(key.privateKey)).toBe(true);
  expect(
    readVerifyingKeys(env, faults).map(({ id, publicKey }) => [id, publicKey.equals(createPublicKey(key.privateKey))]),
  ).toEqual([["gateway-bff.k1", true]]);
  expect(faults).toEqual([]);
});

test("an invalid key is reported without its value", () => {
  const faults: string[] = [];
  readSigningKey({ KEY: "k1=c2VjcmV0" }, "KEY", faults);
  readVerifyingKeys({ TODOKE_TOKEN_KEYS: "gateway-bff=c2VjcmV0" }, faults);
  expect(faults).toHaveLength(2);
  expect(faults.join()).not.toContain("c2VjcmV0");
});
