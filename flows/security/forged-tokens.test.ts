/** Tokens between services as an attacker would forge or reuse them, over HTTP at the services' own ports (reference 5.1 and 5.4). */
import { createHmac, createPublicKey, type KeyObject, randomUUID, sign } from "node:crypto";
import { newSigningKey } from "@todoke/http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type ServiceName, signingKey, startAll, tokenFor, type User } from "../all-services.ts";
import { ask, askRaw, statusOf } from "./asking.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let [alice, admin]: User[] = [];
beforeAll(async () => {
  all = await startAll();
  [alice, admin] = [await all.makeUser("alice"), await all.makeUser("admin")];
});
afterAll(() => all[Symbol.asyncDispose]());

const urlOf = (wanted: ServiceName) => all.running.find(({ name }) => name === wanted)?.url ?? "";
const idOf = (user: User | undefined) => user?.userId ?? "";

const part = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

interface Forgery {
  readonly header?: object;
  readonly claims?: object;
  /** The whole of the claims, where JSON.stringify would not write them so. */
  readonly raw?: (good: object) => string;
  readonly key?: KeyObject;
  readonly seconds?: number;
  readonly at?: number;
}

/** A token of an admin for account that differs from a good one only in what is given. */
function forged({ header, claims, raw, key = signingKey.privateKey, seconds = 60, at = 0 }: Forgery): string {
  const iat = Math.floor(Date.now() / 1_000) + at;
  const good = { iss: "gateway-bff", aud: "account", sub: idOf(admin), roles: ["ADMIN"], iat, exp: iat + seconds };
  const all = { ...good, jti: randomUUID(), ...claims };
  const said = `${part({ alg: "EdDSA", typ: "todoke+jwt", kid: "gateway-bff.k1", ...header })}.${part(raw?.(all) ?? all)}`;
  return `${said}.${sign(null, Buffer.from(said), key).toString("base64url")}`;
}

const readAdmin = (token: string) => ask(`${urlOf("account")}/users/${idOf(admin)}`, { bearer: token });

test("what is forged below would be good as it is", async () => {
  expect((await readAdmin(forged({}))).status).toBe(200);
});

const stranger = newSigningKey("k1").privateKey;

/** The public key as a secret, which it is not: a verifier that believes the header would. */
function byPublicKey(): string {
  const pem = createPublicKey(signingKey.privateKey).export({ type: "spki", format: "pem" });
  const said = `${part({ alg: "HS256", typ: "todoke+jwt", kid: "gateway-bff.k1" })}.${forged({}).split(".")[1]}`;
  return `${said}.${createHmac("sha256", pem).update(said).digest("base64url")}`;
}

test.each<[string, () => string]>([
  ["of another's key", () => forged({ key: stranger })],
  ["of an unknown kid", () => forged({ header: { kid: "gateway-bff.k9" } })],
  ["whose kid is a path", () => forged({ header: { kid: "../../../../dev/null" } })],
  ["whose kid is SQL", () => forged({ header: { kid: "' union select 'AAAA" } })],
  ["whose kid is __proto__", () => forged({ header: { kid: "__proto__" } })],
  ["whose kid is a list", () => forged({ header: { kid: ["gateway-bff.k1"] } })],
  ["without a kid", () => forged({ header: { kid: undefined } })],
  [
    "that brings its key along",
    () => forged({ key: stranger, header: { jwk: { kty: "OKP", crv: "Ed25519", x: "AA" } } }),
  ],
  [
    "that says where its key is",
    () => forged({ key: stranger, header: { jku: "http://127.0.0.1:9/", x5u: "http://127.0.0.1:9/" } }),
  ],
  ["of an ID token's type", () => forged({ header: { typ: "JWT" } })],
  ["of an access token's type", () => forged({ header: { typ: "at+jwt" } })],
  ["without a type", () => forged({ header: { typ: undefined } })],
  ["with an extension that must be understood", () => forged({ header: { crit: ["exp"] } })],
  ["with an unencoded payload", () => forged({ header: { crit: ["b64"], b64: false } })],
  ["of another issuer", () => forged({ claims: { iss: "https://id.example" } })],
  ["for another service", () => forged({ claims: { aud: "points" } })],
  ["for several services", () => forged({ claims: { aud: ["account", "points"] } })],
  ["for nobody", () => forged({ claims: { aud: undefined } })],
  ["that has ended", () => forged({ at: -66 })],
  ["of the future", () => forged({ at: 30 })],
  ["that is not good yet", () => forged({ claims: { nbf: Math.floor(Date.now() / 1_000) + 30 } })],
  ["that lives longer than a minute", () => forged({ seconds: 61 })],
  ["without an end", () => forged({ claims: { exp: undefined } })],
  ["without an id", () => forged({ claims: { jti: undefined } })],
  ["of a role that nobody knows", () => forged({ claims: { roles: ["ROOT"] } })],
  [
    "that says twice for which service it is, this one first",
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
  ["signed with the public key as a secret", byPublicKey],
  ["that is encrypted, or says so", () => `${part({ alg: "dir", enc: "A256GCM", zip: "DEF" })}..AAAA.AAAA.AAAA`],
  ["of 8 kB", () => forged({ claims: { pad: "x".repeat(8_000) } })],
])("a signed token %s is 401 at a service", async (_what, make) => {
  const answer = await readAdmin(make());
  expect([answer.status, answer.code]).toEqual([401, "unauthenticated"]);
});

test("a token past all bounds is refused as a header", async () => {
  const heard = await askRaw(urlOf("account"), [
    `GET /users/${idOf(admin)} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${"A".repeat(1_048_576)}`,
  ]).catch(() => "HTTP/1.1 431 cut off while it was still sent");
  expect(statusOf(heard)).toBe(431);
});

test("a caught token is worth its user, its service and its minute, and nothing else", async () => {
  const token = await tokenFor("account", alice);
  expect((await ask(`${urlOf("account")}/users/${idOf(alice)}`, { bearer: token })).status).toBe(200);
  expect((await ask(`${urlOf("account")}/users/${idOf(admin)}`, { bearer: token })).status).toBe(403);
  expect((await ask(`${urlOf("account")}/admin/users`, { bearer: token })).status).toBe(403);
  expect((await ask(`${urlOf("entitlement")}/v1/users/${idOf(alice)}/entitlements`, { bearer: token })).status).toBe(
    401,
  );
  expect((await ask(`${urlOf("gateway-bff")}/v1/me`, { bearer: token })).status).toBe(401);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 66_000 });
  try {
    expect((await ask(`${urlOf("account")}/users/${idOf(alice)}`, { bearer: token })).status).toBe(401);
  } finally {
    vi.useRealTimers();
  }
});
