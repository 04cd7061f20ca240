import { createPublicKey, hash, randomUUID, verify, type webcrypto } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { demoUsers } from "./demo-users.ts";
import { type IdentityProviderOptions, startIdentityProvider } from "./provider.ts";
import { type Browser, openBrowser } from "./testing.ts";

type PublicKey = webcrypto.JsonWebKey & { kid: string };

const callback = "http://localhost:8080/login/callback";
const home = "http://localhost:8080/";
const client = {
  clientId: "todoke",
  clientSecret: "a-secret-of-this-test",
  redirectUris: [callback],
  postLogoutRedirectUris: [home],
  backchannelLogoutUri: "http://127.0.0.1:9/no-listener",
};
const alice = { username: "alice", password: "alice-demo" };

// Nothing may be printed: warnings of the library would appear in the terminal of `npm start`.
const consoleSpies = [vi.spyOn(console, "info"), vi.spyOn(console, "warn"), vi.spyOn(console, "error")];
afterAll(() => expect(consoleSpies.flatMap(({ mock }) => mock.calls)).toEqual([]));

/** A provider, and a client of it. */
async function setup(options: Partial<IdentityProviderOptions> = {}) {
  const provider = await startIdentityProvider({
    clients: [client],
    users: demoUsers,
    wrongPasswordMs: 100,
    ...options,
  });
  const document = await json(await fetch(`${provider.issuer}/.well-known/openid-configuration`));
  const token = async (params: Record<string, string>) => {
    const secret = { client_id: client.clientId, client_secret: client.clientSecret };
    return fetch(document.token_endpoint, { method: "POST", body: new URLSearchParams({ ...secret, ...params }) });
  };
  return {
    provider,
    document,
    token,
    keys: async () => (await json(await fetch(document.jwks_uri))).keys as PublicKey[],
    /** The authorization URL, and the PKCE verifier for the code exchange. */
    start(changes: Record<string, string> = {}) {
      const verifier = randomUUID() + randomUUID();
      const url = new URL(document.authorization_endpoint);
      url.search = new URLSearchParams({
        client_id: client.clientId,
        response_type: "code",
        redirect_uri: callback,
        scope: "openid email profile",
        state: "s1",
        nonce: "n1",
        code_challenge: hash("sha256", verifier, "base64url"),
        code_challenge_method: "S256",
        ...changes,
      }).toString();
      return { url, verifier };
    },
    /** The whole login, up to the tokens. */
    async logIn(browser: Browser, changes: Record<string, string> = {}) {
      const { url, verifier } = this.start(changes);
      const page = await browser.visit(url);
      const { url: end } = page.url.origin === url.origin ? await browser.visit(page.url, alice) : page;
      const code = end.searchParams.get("code") ?? "";
      const exchange = { grant_type: "authorization_code", code, redirect_uri: callback, code_verifier: verifier };
      return { end, exchange, tokens: await json(await token(exchange)) };
    },
    refresh: async (refresh_token: string) => json(await token({ grant_type: "refresh_token", refresh_token })),
    [Symbol.asyncDispose]: () => provider[Symbol.asyncDispose](),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: a response of the provider
const json = async (response: Response): Promise<any> => response.json();

const decodePart = (token: string, index: 0 | 1) =>
  JSON.parse(Buffer.from(token.split(".")[index] ?? "", "base64url").toString());

function isSignedBy(token: string, keys: readonly PublicKey[]): boolean {
  const key = keys.find(({ kid }) => kid === decodePart(token, 0).kid);
  const [head, body, signature = ""] = token.split(".");
  if (!key) return false;
  const publicKey = createPublicKey({ key, format: "jwk" });
  return verify("RSA-SHA256", Buffer.from(`${head}.${body}`), publicKey, Buffer.from(signature, "base64url"));
}

function folder() {
  const path = mkdtempSync(join(tmpdir(), "todoke-identity-"));
  return { file: join(path, "keys.json"), [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test("a user logs in, and the client gets the claims", async () => {
  await using t = await setup();
  const { end, tokens } = await t.logIn(openBrowser());
  expect(end.href.startsWith(`${callback}?`)).toBe(true);
  expect(Object.fromEntries(end.searchParams)).toMatchObject({ state: "s1", iss: t.provider.issuer });
  const who = {
    sub: "alice",
    email: "alice@example.com",
    email_verified: true,
    name: "Alice Example",
    locale: "en",
    preferred_username: "alice",
  };
  expect(isSignedBy(tokens.id_token, await t.keys())).toBe(true);
  expect(decodePart(tokens.id_token, 0).alg).toBe("RS256");
  const sid = expect.any(String);
  expect(decodePart(tokens.id_token, 1)).toMatchObject({
    ...who,
    iss: t.provider.issuer,
    aud: "todoke",
    nonce: "n1",
    sid,
  });
  const authorization = `Bearer ${tokens.access_token}`;
  expect(await json(await fetch(t.document.userinfo_endpoint, { headers: { authorization } }))).toEqual(who);
});

test("a code is valid once and only with its PKCE verifier; PKCE is required", async () => {
  await using t = await setup();
  const browser = openBrowser();
  const { exchange } = await t.logIn(browser);
  expect(await json(await t.token(exchange))).toMatchObject({ error: "invalid_grant" });
  const again = await t.logIn(browser);
  const other = await t.logIn(browser, { code_challenge: hash("sha256", "another", "base64url") });
  expect(again.tokens).toHaveProperty("id_token");
  expect(other.tokens).toMatchObject({ error: "invalid_grant" });
  for (const changes of [{ code_challenge: "", code_challenge_method: "" }, { code_challenge_method: "plain" }]) {
    const { url } = await browser.visit(t.start(changes).url);
    expect(url.searchParams.get("error")).toBe("invalid_request");
  }
});

test("a wrong password is rejected after a delay, in the language of the browser", async () => {
  await using t = await setup({ wrongPasswordMs: 200 });
  const browser = openBrowser({ "accept-language": "fr, ja-JP;q=0.8, en;q=0.5" });
  const page = await browser.visit(t.start().url);
  expect(page.text).toContain('<html lang="ja">');
  expect(page.headers.get("content-language")).toBe("ja");
  for (const wrong of [
    { ...alice, password: "bob-demo" },
    { ...alice, username: "mallory" },
    { username: "", password: "" },
  ]) {
    const asked = performance.now();
    const { status, text, url } = await browser.visit(page.url, wrong);
    expect(performance.now() - asked).toBeGreaterThan(190);
    expect({ status, url: url.href }).toEqual({ status: 422, url: page.url.href });
    expect(text).toContain("ユーザー名またはパスワードが違います。");
  }
  const { url } = await browser.visit(page.url, alice);
  expect(url.searchParams.has("code")).toBe(true);
});

test("the page loads no resources, runs no script and cannot be framed", async () => {
  await using t = await setup();
  const { text, headers } = await openBrowser().visit(t.start().url);
  expect(headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; frame-ancestors 'none'$/,
  );
  expect(headers.get("cache-control")).toBe("no-store");
  expect(text).not.toMatch(/<script|<link|src=|https?:/);
  const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? "";
  expect(headers.get("content-security-policy")).toContain(hash("sha256", style, "base64"));
});

test("an invalid request shows an error page with escaped values", async () => {
  await using t = await setup();
  const state = `"><script>alert(1)</script>`;
  const { status, text } = await openBrowser().visit(t.start({ redirect_uri: "https://elsewhere.example", state }).url);
  expect(status).toBe(400);
  expect(text).toContain("<p>error: invalid_redirect_uri</p>");
  expect(text).toContain("<p>state: &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;</p>");
});

test("a cancelled login returns access_denied, and its page has expired", async () => {
  await using t = await setup();
  const browser = openBrowser();
  const page = await browser.visit(t.start().url);
  const { url } = await browser.visit(page.url, { cancel: "yes" });
  expect(url.searchParams.get("error")).toBe("access_denied");
  const stranger = await openBrowser().visit(page.url, alice);
  expect(stranger).toMatchObject({ status: 400, text: expect.stringContaining("This login has expired.") });
});

test("a form that is too large is rejected", async () => {
  await using t = await setup();
  const browser = openBrowser();
  const page = await browser.visit(t.start().url);
  expect((await browser.visit(page.url, { username: "x".repeat(5_000) })).status).toBe(413);
  const { url } = await browser.visit(page.url, alice);
  expect(url.searchParams.has("code")).toBe(true);
});

test("a logged-in user sees neither the login page nor a consent page", async () => {
  await using t = await setup();
  const browser = openBrowser();
  await t.logIn(browser);
  const { end } = await t.logIn(browser, { prompt: "consent", scope: "openid offline_access" });
  expect(end.searchParams.has("code")).toBe(true);
  const silent = await openBrowser().visit(t.start({ prompt: "none" }).url);
  expect(silent.url.searchParams.get("error")).toBe("login_required");
  const asked = await browser.visit(t.start({ prompt: "login" }).url);
  expect(asked.text).toContain('<form method="post">');
});

test("a refresh token is valid once; a second use ends the session", async () => {
  await using t = await setup();
  const { tokens } = await t.logIn(openBrowser());
  const second = await t.refresh(tokens.refresh_token);
  expect(decodePart(second.id_token, 1)).toMatchObject({ sub: "alice", sid: decodePart(tokens.id_token, 1).sid });
  expect(second.refresh_token).not.toBe(tokens.refresh_token);
  expect(await t.refresh(tokens.refresh_token)).toMatchObject({ error: "invalid_grant" });
  expect(await t.refresh(second.refresh_token)).toMatchObject({ error: "invalid_grant" });
});

test("a revoked refresh token is invalid", async () => {
  await using t = await setup();
  const { tokens } = await t.logIn(openBrowser());
  const secret = { client_id: client.clientId, client_secret: client.clientSecret };
  const body = new URLSearchParams({ ...secret, token: tokens.refresh_token });
  expect((await fetch(t.document.revocation_endpoint, { method: "POST", body })).status).toBe(200);
  expect(await t.refresh(tokens.refresh_token)).toMatchObject({ error: "invalid_grant" });
});

test("sessions and tokens survive a key rotation, and old tokens can still be verified", async () => {
  await using t = await setup();
  const browser = openBrowser();
  const before = await t.logIn(browser);
  await Promise.all([t.provider.rotateKeys(), t.provider.rotateKeys()]);
  const after = await t.refresh(before.tokens.refresh_token);
  const keys = await t.keys();
  expect(keys).toHaveLength(3);
  expect(decodePart(after.id_token, 0).kid).toBe(keys[0]?.kid);
  expect(decodePart(before.tokens.id_token, 0).kid).toBe(keys[2]?.kid);
  expect(isSignedBy(after.id_token, keys) && isSignedBy(before.tokens.id_token, keys)).toBe(true);
  expect((await t.logIn(browser)).end.searchParams.has("code")).toBe(true);
  await t.provider.rotateKeys();
  expect(await t.keys()).toHaveLength(3);
});

test("keys survive a restart, in a file that only its owner can read", async () => {
  using place = folder();
  const start = async () => {
    await using t = await setup({ keysFile: place.file });
    await t.provider.rotateKeys();
    return await t.keys();
  };
  const first = await start();
  const second = await start();
  expect(second.slice(1)).toEqual(first);
  expect(statSync(place.file).mode & 0o777).toBe(0o600);
  expect(JSON.stringify(second)).not.toContain('"d"');

  writeFileSync(place.file, '{"keys":"secret"');
  const refused = await setup({ keysFile: place.file }).catch((error) => error);
  expect(refused.message).toBe(`${place.file} does not contain signing keys. Delete it to create new ones.`);
});

test("a logout is confirmed by the user, ends the session, and is sent to the client by the back channel", async () => {
  const received: string[] = [];
  await using listener = createServer(async (request, reply) => {
    received.push(Buffer.concat(await request.toArray()).toString());
    reply.end();
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const backchannelLogoutUri = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/received`;
  await using t = await setup({ clients: [{ ...client, backchannelLogoutUri }] });
  const browser = openBrowser();
  const { tokens } = await t.logIn(browser);

  const leave = new URL(t.document.end_session_endpoint);
  leave.search = new URLSearchParams({ id_token_hint: tokens.id_token, post_logout_redirect_uri: home }).toString();
  const { text } = await browser.visit(leave);
  expect(text).toContain("Log out here as well?");
  const [, action = "", xsrf = ""] =
    /action="([^"]+)"><input type="hidden" name="xsrf" value="([^"]+)"/.exec(text) ?? [];
  const { url } = await browser.visit(action, { xsrf, logout: "yes" });
  expect(url.href).toBe(home);

  const token = new URLSearchParams(received[0]).get("logout_token") ?? "";
  expect(isSignedBy(token, await t.keys())).toBe(true);
  const { sid } = decodePart(tokens.id_token, 1);
  const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
  expect(decodePart(token, 1)).toMatchObject({ sub: "alice", sid, aud: "todoke", events, jti: expect.any(String) });
  expect(await t.refresh(tokens.refresh_token)).toMatchObject({ error: "invalid_grant" });
  expect((await browser.visit(t.start().url)).text).toContain('<form method="post">');
});

test("a failed back-channel logout is reported", async () => {
  const errors: unknown[] = [];
  await using t = await setup({ onError: (error) => errors.push(error) });
  const browser = openBrowser();
  const { tokens } = await t.logIn(browser);
  const { text } = await browser.visit(`${t.document.end_session_endpoint}?id_token_hint=${tokens.id_token}`);
  const [, action = "", xsrf = ""] =
    /action="([^"]+)"><input type="hidden" name="xsrf" value="([^"]+)"/.exec(text) ?? [];
  expect((await browser.visit(action, { xsrf, logout: "yes" })).text).toContain("You are logged out.");
  expect(errors).toHaveLength(1);
});

test("the provider listens on loopback only and responds to its own host only", async () => {
  const open = { host: "0.0.0.0", clients: [client], users: demoUsers } as unknown as IdentityProviderOptions;
  await expect(startIdentityProvider(open)).rejects.toThrow("loopback only, not on 0.0.0.0");
  await using t = await setup();
  const { port } = new URL(t.provider.issuer);
  const asked = request({ host: "127.0.0.1", port, path: "/jwks", headers: { host: `rebound.example:${port}` } }).end();
  const [answer] = await once(asked, "response");
  expect(answer.resume().statusCode).toBe(421);
});
