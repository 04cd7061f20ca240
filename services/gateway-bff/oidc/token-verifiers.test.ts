import { createPublicKey } from "node:crypto";
import { generateKeyPair, SignJWT } from "jose";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { startGateway } from "./testing/gateway.ts";
import { clientId, type LyingProvider, startLyingProvider, type Token } from "./testing/lying-provider.ts";

const provider = await startLyingProvider();
const gateway = await startGateway({ issuer: provider.issuer });
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

/** Seconds from now. */
const at = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

function tell(lies: LyingProvider["lies"]) {
  provider.lies = lies;
  onTestFinished(async () => {
    provider.lies = {};
    await gateway.db.query("delete from sessions");
  });
}

async function withPublicKeyAsSecret({ header, claims }: Token): Promise<string> {
  const spki = createPublicKey({ key: await provider.publicKey(), format: "jwk" });
  const pem = spki.export({ type: "spki", format: "pem" });
  return new SignJWT(claims).setProtectedHeader({ ...header, alg: "HS256" }).sign(Buffer.from(pem));
}

async function byStranger({ header, claims }: Token): Promise<string> {
  const { privateKey } = await generateKeyPair("ES256");
  return new SignJWT(claims).setProtectedHeader(header).sign(privateKey);
}

const unsigned = (alg: string) => (token: Token) => `${part({ ...token.header, alg })}.${part(token.claims)}.`;

/** With the honest signature of another text, or none that could ever be one. */
const resigned = (change: (parts: [string, string, string]) => [string, string, string]) => async (token: Token) =>
  change((await provider.signed(token)).split(".") as [string, string, string]).join(".");

test.each<[string, () => LyingProvider["lies"]]>([
  ["signed with another key under the provider's key id", () => ({ idToken: byStranger })],
  [
    "whose claims were changed after it was signed",
    () => ({ idToken: resigned(([head, , sign]) => [head, part({ sub: "admin" }), sign]) }),
  ],
  ["whose signature is cut off", () => ({ idToken: resigned(([head, claims]) => [head, claims, ""]) })],
  [
    "whose signature is all zeros",
    () => ({ idToken: resigned(([head, claims]) => [head, claims, Buffer.alloc(64).toString("base64url")]) }),
  ],
  ["without a signature (alg none)", () => ({ idToken: unsigned("none") })],
  ["without a signature (alg None)", () => ({ idToken: unsigned("None") })],
  ["without a signature (alg nOnE)", () => ({ idToken: unsigned("nOnE") })],
  ["signed with the public key as a secret (HS256)", () => ({ idToken: withPublicKeyAsSecret })],
  ["of another issuer", () => ({ claims: { iss: "https://other.example" } })],
  ["without an issuer", () => ({ claims: { iss: undefined } })],
  ["for another client", () => ({ claims: { aud: "another" } })],
  ["for several clients, of which we are none", () => ({ claims: { aud: ["another", "third"], azp: clientId } })],
  ["for several clients, without saying which asked", () => ({ claims: { aud: [clientId, "another"] } })],
  ["for several clients, asked for by another", () => ({ claims: { aud: [clientId, "another"], azp: "another" } })],
  ["for us, but asked for by another", () => ({ claims: { azp: "another" } })],
  ["without an audience", () => ({ claims: { aud: undefined } })],
  ["of another login (nonce)", () => ({ claims: { nonce: "of another login" } })],
  ["without a nonce", () => ({ claims: { nonce: undefined } })],
  ["that ended 61 seconds ago", () => ({ claims: { exp: at(-61) } })],
  ["that never ends", () => ({ claims: { exp: undefined } })],
  ["that ends at no time", () => ({ claims: { exp: "soon" } })],
  ["that begins in more than a minute", () => ({ claims: { nbf: at(90) } })],
  ["made more than a minute in the future", () => ({ claims: { iat: at(90) } })],
  ["made long ago", () => ({ claims: { iat: at(-3_600) } })],
  ["made at no time", () => ({ claims: { iat: undefined } })],
  ["without a subject", () => ({ claims: { sub: undefined } })],
  ["with a subject that is too long", () => ({ claims: { sub: "a".repeat(256) } })],
  ["with a subject that cannot be stored", () => ({ claims: { sub: "alice\u0000" } })],
  ["with a subject that is no text", () => ({ claims: { sub: { id: 1 } } })],
  ["that is an access token", () => ({ header: { typ: "at+jwt" } })],
  ["that is a logout token", () => ({ header: { typ: "logout+jwt" } })],
  ["that brings its own key (jwk)", () => ({ header: { kid: "mine", jwk: { kty: "oct", k: "AAAA" } } })],
  ["that names where its key is (jku)", () => ({ header: { kid: "mine", jku: "http://127.0.0.1:9/jwks" } })],
  ["that names where its certificate is (x5u)", () => ({ header: { kid: "mine", x5u: "http://127.0.0.1:9/cert" } })],
  ["with a key id that is a path", () => ({ header: { kid: "../../etc/passwd" } })],
  ["with a key id that is SQL", () => ({ header: { kid: "' or 1=1 --" } })],
  ["with a key id of 100 kB", () => ({ header: { kid: "k".repeat(100_000) } })],
  ["with an extension that must be understood (crit)", () => ({ header: { crit: ["exp"], exp: 1 } })],
  ["with an unencoded payload (b64)", () => ({ header: { crit: ["b64"], b64: false } })],
  ["that is encrypted, or says so", () => ({ idToken: () => "eyJhbGciOiJkaXIifQ..AAAA.AAAA.AAAA" })],
  ["of four parts", () => ({ idToken: () => "eyJhbGciOiJFUzI1NiJ9.e30.AAAA.AAAA" })],
  ["that is no token", () => ({ idToken: () => "hello" })],
  ["of 1 MB", () => ({ idToken: () => `eyJhbGciOiJFUzI1NiJ9.${"A".repeat(1_048_576)}.AAAA` })],
])("an ID token %s is refused and appears in no response and no log", async (_name, lies) => {
  tell(lies());
  const browser = gateway.browser();
  const answer = await browser.logIn();
  expect(answer.json()).toMatchObject({ status: 502, code: "identity-not-proven" });
  expect(browser.cookies.has("__Host-todoke")).toBe(false);
  expect(await gateway.rows()).toEqual({ sessions: 0, underWay: 0 });
  gateway.expectUnseen(provider.secrets);
});

test.each<[string, () => LyingProvider["lies"]]>([
  ["that ended 40 seconds ago by our clock", () => ({ claims: { exp: at(-40) } })],
  ["that begins in 50 seconds by our clock", () => ({ claims: { nbf: at(50), iat: at(50) } })],
  ["for several clients, asked for by us", () => ({ claims: { aud: [clientId, "another"], azp: clientId } })],
  ["for a list of us alone", () => ({ claims: { aud: [clientId] } })],
  ["without a type", () => ({ header: { typ: undefined } })],
])("an ID token %s is accepted", async (_name, lies) => {
  tell(lies());
  expect((await gateway.browser().logIn()).statusCode).toBe(303);
});
