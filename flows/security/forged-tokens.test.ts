/** Forged and reused service tokens, at the services' own ports (reference 5.1 and 5.4). */
import { createHmac, createPublicKey, type KeyObject, randomUUID, sign } from "node:crypto";
import { newSigningKey } from "@todoke/http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type ServiceName, signingKey, startAll, tokenFor, type User } from "../all-services.ts";
import { parseStatus, send, sendRaw } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let [alice, admin]: User[] = [];
beforeAll(async () => {
  all = await startAll();
  [alice, admin] = [await all.createUser("alice"), await all.createUser("admin")];
});
afterAll(() => all[Symbol.asyncDispose]());

const serviceUrl = (wanted: ServiceName) => all.running.find(({ name }) => name === wanted)?.url ?? "";
const userIdOf = (user: User | undefined) => user?.userId ?? "";

const part = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

interface Forgery {
  readonly header?: object;
  readonly claims?: object;
  /** The claims as text that JSON.stringify would not write. */
  readonly raw?: (good: object) => string;
  readonly key?: KeyObject;
  readonly seconds?: number;
  readonly at?: number;
}

/** An admin's token for account that differs from a valid one only in the given parts. */
function forged({ header, claims, raw, key = signingKey.privateKey, seconds = 60, at = 0 }: Forgery): string {
  const iat = Math.floor(Date.now() / 1_000) + at;
  const good = { iss: "gateway-bff", aud: "account", sub: userIdOf(admin), roles: ["ADMIN"], iat, exp: iat + seconds };
  const all = { ...good, jti: randomUUID(), ...claims };
  const signed = `${part({ alg: "EdDSA", typ: "todoke+jwt", kid: "gateway-bff.k1", ...header })}.${part(raw?.(all) ?? all)}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
}

const readAdmin = (token: string) => send(`${serviceUrl("account")}/users/${userIdOf(admin)}`, { bearer: token });

test("an unchanged token is accepted", async () => {
  expect((await readAdmin(forged({}))).status).toBe(200);
});

const stranger = newSigningKey("k1").privateKey;

/** HS256 with the public key as secret: a verifier that trusts the header would accept it. */
function signedWithPublicKey(): string {
  const pem = createPublicKey(signingKey.privateKey).export({ type: "spki", format: "pem" });
  const signed = `${part({ alg: "HS256", typ: "todoke+jwt", kid: "gateway-bff.k1" })}.${forged({}).split(".")[1]}`;
  return `${signed}.${createHmac("sha256", pem).update(signed).digest("base64url")}`;
}

test.each<[string, () => string]>([
  ["signed with another key", () => forged({ key: stranger })],
  ["with an unknown kid", () => forged({ header: { kid: "gateway-bff.k9" } })],
  ["whose kid is a path", () => forged({ header: { kid: "../../../../dev/null" } })],
  ["whose kid is SQL", () => forged({ header: { kid: "' union select 'AAAA" } })],
  ["whose kid is __proto__", () => forged({ header: { kid: "__proto__" } })],
  ["whose kid is a list", () => forged({ header: { kid: ["gateway-bff.k1"] } })],
  ["without a kid", () => forged({ header: { kid: undefined } })],
  ["with an embedded key", () => forged({ key: stranger, header: { jwk: { kty: "OKP", crv: "Ed25519", x: "AA" } } })],
  [
    "with a key URL",
    () => forged({ key: stranger, header: { jku: "http://127.0.0.1:9/", x5u: "http://127.0.0.1:9/" } }),
  ],
  ["with the type of an ID token", () => forged({ header: { typ: "JWT" } })],
  ["with the type of an access token", () => forged({ header: { typ: "at+jwt" } })],
  ["without a type", () => forged({ header: { typ: undefined } })],
  ["with an unknown critical extension", () => forged({ header: { crit: ["exp"] } })],
  ["with an unencoded payload", () => forged({ header: { crit: ["b64"], b64: false } })],
  ["from another issuer", () => forged({ claims: { iss: "https://id.example" } })],
  ["for another service", () => forged({ claims: { aud: "points" } })],
  ["for several services", () => forged({ claims: { aud: ["account", "points"] } })],
  ["without an audience", () => forged({ claims: { aud: undefined } })],
  ["that has expired", () => forged({ at: -66 })],
  ["issued in the future", () => forged({ at: 30 })],
  ["that is not valid yet", () => forged({ claims: { nbf: Math.floor(Date.now() / 1_000) + 30 } })],
  ["that is valid for more than a minute", () => forged({ seconds: 61 })],
  ["without an expiry", () => forged({ claims: { exp: undefined } })],
  ["without an id", () => forged({ claims: { jti: undefined } })],
  ["with an unknown role", () => forged({ claims: { roles: ["ROOT"] } })],
  [
    "with two audiences, this service first",
    () => forged({ raw: (good) => JSON.stringify(good).replace(/}$/, ',"aud":"points"}') }),
  ],
  [
    "without a signature (none)",
    () => `${part({ alg: "none", typ: "todoke+jwt", kid: "gateway-bff.k1" })}.${forged({}).split(".")[1]}.`,
  ],
  [
    "without a signature (nOnE)",
    () => `${part({ alg: "nOnE", typ: "todoke+jwt", kid: "gateway-bff.k1" })}.${forged({}).split(".")[1]}.AAAA`,
  ],
  ["whose signature is all zeros", () => forged({}).replace(/[^.]+$/, Buffer.alloc(64).toString("base64url"))],
  ["whose claims were changed", () => forged({}).replace(/\.[^.]+\./, `.${part({ sub: "x" })}.`)],
  ["signed with the public key as a secret", signedWithPublicKey],
  ["that claims to be encrypted", () => `${part({ alg: "dir", enc: "A256GCM", zip: "DEF" })}..AAAA.AAAA.AAAA`],
  ["of 8 kB", () => forged({ claims: { pad: "x".repeat(8_000) } })],
])("a signed token %s is 401 at a service", async (_what, make) => {
  const response = await readAdmin(make());
  expect([response.status, response.code]).toEqual([401, "unauthenticated"]);
});

test("an oversized token gets 431", async () => {
  const received = await sendRaw(serviceUrl("account"), [
    `GET /users/${userIdOf(admin)} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${"A".repeat(1_048_576)}`,
  ]).catch(() => "HTTP/1.1 431 cut off while it was still sent");
  expect(parseStatus(received)).toBe(431);
});

test("a stolen token works for its user, its service and one minute only", async () => {
  const token = await tokenFor("account", alice);
  expect((await send(`${serviceUrl("account")}/users/${userIdOf(alice)}`, { bearer: token })).status).toBe(200);
  expect((await send(`${serviceUrl("account")}/users/${userIdOf(admin)}`, { bearer: token })).status).toBe(403);
  expect((await send(`${serviceUrl("account")}/admin/users`, { bearer: token })).status).toBe(403);
  expect(
    (await send(`${serviceUrl("entitlement")}/v1/users/${userIdOf(alice)}/entitlements`, { bearer: token })).status,
  ).toBe(401);
  expect((await send(`${serviceUrl("gateway-bff")}/v1/me`, { bearer: token })).status).toBe(401);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 66_000 });
  try {
    expect((await send(`${serviceUrl("account")}/users/${userIdOf(alice)}`, { bearer: token })).status).toBe(401);
  } finally {
    vi.useRealTimers();
  }
});
