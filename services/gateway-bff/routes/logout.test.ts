import { hash, randomUUID } from "node:crypto";
import { until } from "@todoke/kernel/testing";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { startGateway } from "../oidc/testing/gateway.ts";
import { clientId, type Lies, type LyingProvider, startLyingProvider } from "../oidc/testing/lying-provider.ts";

interface Options {
  readonly lies?: Lies;
}

async function open({ lies = {} }: Options = {}) {
  const parts = new AsyncDisposableStack();
  const provider = parts.use(await startLyingProvider(lies));
  const gateway = parts.use(await startGateway({ issuer: provider.issuer }));
  const sayEnded = (logoutToken: string) =>
    gateway.inject({
      method: "POST",
      url: "/login/backchannel-logout",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      payload: new URLSearchParams({ logout_token: logoutToken }).toString(),
    });
  return { provider, gateway, browser: gateway.browser(), sayEnded, close: () => parts.disposeAsync() };
}

async function setup(options: Options = {}) {
  const opened = await open(options);
  onTestFinished(opened.close);
  return opened;
}

/** For tests that end no session: a user is logged in. */
const shared = await open();
await shared.browser.logIn();
afterAll(shared.close);

const event = "http://schemas.openid.net/event/backchannel-logout";

/** A logout token as the provider makes it, without undefined claims. */
function logoutToken(
  provider: LyingProvider,
  change: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
) {
  const now = Math.floor(Date.now() / 1_000);
  const honest = { iss: provider.issuer, aud: clientId, iat: now, exp: now + 120, jti: randomUUID(), sid: "sid-1" };
  const claims = Object.entries({ ...honest, events: { [event]: {} }, ...change }).filter(
    ([, value]) => value !== undefined,
  );
  return provider.signedWithCurrentKey({ typ: "logout+jwt", ...header }, Object.fromEntries(claims));
}

test("a logout ends the session, clears the cookie and returns the provider's logout address", async () => {
  const { provider, gateway, browser } = await setup();
  await browser.logIn();
  const token = browser.cookies.get("__Host-todoke");
  const answer = await browser.post("/logout");
  expect(answer.statusCode).toBe(200);
  const url = new URL(answer.json().logout_url);
  expect(url.origin + url.pathname).toBe(`${provider.issuer}/logout`);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    client_id: clientId,
    post_logout_redirect_uri: "https://play.example/",
  });
  expect(answer.headers["set-cookie"]).toMatch(/^__Host-todoke=; .*Max-Age=0/);
  browser.cookies.set("__Host-todoke", token ?? "");
  expect(await browser.whoami()).toMatchObject({ status: 401 });
  await until("the provider has forgotten the refresh token", () => provider.revoked.length > 0);
  expect(provider.revoked).toEqual([expect.stringMatching(/^refresh-/)]);
  gateway.expectUnseen(provider.secrets);
});

test("a logout works while the provider is unavailable", async () => {
  const { provider, gateway, browser } = await setup();
  await browser.logIn();
  await provider.down();
  expect((await browser.post("/logout")).statusCode).toBe(200);
  expect((await gateway.rows()).sessions).toBe(0);
  await until("the failed revocation is reported", () => gateway.errors.length > 0);
  gateway.expectUnseen(provider.secrets);
});

test("a logout works if the provider has no logout address", async () => {
  const { gateway, browser } = await setup({ lies: { metadata: { end_session_endpoint: undefined } } });
  await browser.logIn();
  expect((await browser.post("/logout")).json()).toEqual({});
  expect((await gateway.rows()).sessions).toBe(0);
});

test("neither another site nor a link can log a user out", async () => {
  const { gateway, browser } = await setup();
  await browser.logIn();
  expect((await browser.ask({ method: "POST", url: "/logout" })).statusCode).toBe(403);
  const foreign = { origin: "https://evil.example", "x-todoke-request": "1" };
  expect((await browser.ask({ method: "POST", url: "/logout", headers: foreign })).statusCode).toBe(403);
  expect((await browser.get("/logout")).statusCode).toBe(405);
  expect((await gateway.browser().post("/logout")).statusCode).toBe(401);
  expect(await browser.whoami()).toEqual({ caller: "user:user-alice" });
});

test("a back-channel logout by sid ends only its session", async () => {
  const { provider, gateway, browser, sayEnded } = await setup();
  await browser.logIn();
  provider.lies = { claims: { sid: "sid-2" } };
  const elsewhere = gateway.browser();
  await elsewhere.logIn();
  const answer = await sayEnded(await logoutToken(provider));
  expect(answer.statusCode).toBe(200);
  expect(answer.headers["cache-control"]).toBe("no-store");
  expect(await browser.whoami()).toMatchObject({ status: 401 });
  expect(await elsewhere.whoami()).toEqual({ caller: "user:user-alice" });
});

test("a back-channel logout by subject ends all sessions of the user", async () => {
  const { provider, gateway, browser, sayEnded } = await setup();
  await browser.logIn();
  await gateway.browser().logIn();
  provider.subject = "bob";
  const bob = gateway.browser();
  await bob.logIn();
  const token = await logoutToken(provider, { sid: undefined, sub: "alice" });
  expect((await sayEnded(token)).statusCode).toBe(200);
  expect((await gateway.rows()).sessions).toBe(1);
  expect(await bob.whoami()).toEqual({ caller: "user:user-bob" });
});

test("a logout token is accepted once", async () => {
  const { provider, browser, sayEnded } = await setup();
  const token = await logoutToken(provider, { sid: undefined, sub: "alice" });
  expect((await sayEnded(token)).statusCode).toBe(200);
  await browser.logIn();
  expect((await sayEnded(token)).json()).toMatchObject({ status: 400, code: "logout-token-refused" });
  expect(await browser.whoami()).toEqual({ caller: "user:user-alice" });
});

test("a logout token can be sent again after a failure", async () => {
  const { provider, gateway, browser, sayEnded } = await setup();
  await browser.logIn();
  const token = await logoutToken(provider);
  // From here on nothing can be deleted: neither the session, nor what was recorded of the token.
  await gateway.db.query(`
    create function break_off() returns trigger language plpgsql as $$ begin raise exception 'broken off'; end $$;
    create trigger break_off before delete on sessions for each statement execute function break_off();
    create trigger break_off before delete on one_time for each statement execute function break_off();`);
  expect((await sayEnded(token)).statusCode).toBe(500);
  await gateway.db.query("drop function break_off cascade");
  expect(await browser.whoami()).toEqual({ caller: "user:user-alice" });
  expect((await sayEnded(token)).statusCode).toBe(200);
  expect((await gateway.rows()).sessions).toBe(0);
});

test.each([
  ["its session", {}],
  ["all of the user's", { sid: undefined, sub: "alice" }],
])("a logout at the provider of %s before the callback opens no session", async (_name, claims) => {
  const { provider, gateway, browser, sayEnded } = await setup();
  const callback = await browser.toCallback();
  expect((await sayEnded(await logoutToken(provider, claims))).statusCode).toBe(200);
  // Longer than a login of ten minutes and a native code of one.
  const remembered = "select from provider_logouts where expires_at - ended_at > interval '11 minutes'";
  expect((await gateway.db.query(remembered)).rowCount).toBe(1);
  expect((await browser.get(callback)).json()).toMatchObject({ status: 403, code: "login-refused" });
  expect((await gateway.rows()).sessions).toBe(0);
  // A new login at the provider has another session there.
  provider.lies = { claims: { sid: "sid-2" } };
  await browser.logIn();
  expect(await browser.whoami()).toEqual({ caller: "user:user-alice" });
});

test("a logout at the provider invalidates the code of a native login", async () => {
  const { provider, gateway, browser, sayEnded } = await setup();
  const verifier = "v".repeat(43);
  const redirect_uri = "http://127.0.0.1:51004/done";
  const query = new URLSearchParams({
    client: "native",
    redirect_uri,
    code_challenge: hash("sha256", verifier, "base64url"),
  });
  const end = new URL(String((await browser.logIn(`?${query}`)).headers.location));
  expect((await sayEnded(await logoutToken(provider))).statusCode).toBe(200);
  const payload = { code: end.searchParams.get("code"), code_verifier: verifier };
  const answer = await gateway.inject({ method: "POST", url: "/login/token", payload });
  expect(answer.json()).toMatchObject({ status: 400, code: "native-code-refused" });
  expect((await gateway.rows()).sessions).toBe(0);
});

test("the log has logins and logouts with address and caller, and no secret", async () => {
  const { provider, gateway, browser, sayEnded } = await setup();
  const logged = () =>
    gateway.logged.map((line) => JSON.parse(line)).map(({ msg, address, caller }) => [msg, address, caller]);
  const alice = "user:user-alice";
  await browser.logIn();
  await browser.post("/logout");
  await browser.logIn();
  await sayEnded(await logoutToken(provider));
  await browser.get("/login/callback?state=of-nobody");
  expect(logged()).toEqual([
    ["logged in", "127.0.0.1", alice],
    ["logged out", "127.0.0.1", alice],
    ["logged in", "127.0.0.1", alice],
    ["logged out by the provider", "127.0.0.1", undefined],
    ["refused", "127.0.0.1", undefined],
  ]);
  gateway.expectUnseen(provider.secrets);
});

const now = () => Math.floor(Date.now() / 1_000);

test.each<[string, (provider: LyingProvider) => string | Promise<string>]>([
  ["that is none", () => "hello"],
  ["of another issuer", (p) => logoutToken(p, { iss: "https://other.example" })],
  ["for another client", (p) => logoutToken(p, { aud: "another" })],
  ["made long ago", (p) => logoutToken(p, { iat: now() - 3_600, exp: now() + 60 })],
  ["made in the future", (p) => logoutToken(p, { iat: now() + 120 })],
  ["made at no time", (p) => logoutToken(p, { iat: undefined })],
  ["that has ended", (p) => logoutToken(p, { exp: now() - 61 })],
  ["without an id", (p) => logoutToken(p, { jti: undefined })],
  ["without a logout event", (p) => logoutToken(p, { events: {} })],
  ["without events", (p) => logoutToken(p, { events: undefined })],
  ["with a nonce", (p) => logoutToken(p, { nonce: "n" })],
  ["without sid and sub", (p) => logoutToken(p, { sid: undefined, sub: undefined })],
  ["about a session without a name", (p) => logoutToken(p, { sid: 7 })],
  ["of another kind", (p) => logoutToken(p, {}, { typ: "at+jwt" })],
  ["without a signature", async (p) => (await logoutToken(p)).replace(/[^.]*$/, "")],
  ["with another's signature", async (p) => (await logoutToken(p)).replace(/[^.]{86}$/, "A".repeat(86))],
])("a logout token %s ends no session", async (_name, make) => {
  const { provider, gateway, sayEnded } = shared;
  expect((await sayEnded(await make(provider))).json()).toMatchObject({ status: 400, code: "logout-token-refused" });
  expect((await gateway.rows()).sessions).toBe(1);
});

test("an ID token ends no session", async () => {
  const { provider, gateway, browser, sayEnded } = await setup();
  await browser.logIn();
  const idToken = provider.secrets.find((secret) => secret.startsWith("eyJ")) ?? "";
  expect((await sayEnded(idToken)).json()).toMatchObject({ code: "logout-token-refused" });
  expect((await gateway.rows()).sessions).toBe(1);
});

test.each([
  ["two tokens", "logout_token=a&logout_token=b", 400],
  ["no token", "x=1", 400],
  ["a token past all bounds", `logout_token=${"a".repeat(20_000)}`, 413],
])("a logout with %s is refused", async (_name, payload, status) => {
  const { gateway } = shared;
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  expect(
    (await gateway.inject({ method: "POST", url: "/login/backchannel-logout", headers, payload })).statusCode,
  ).toBe(status);
});

test("only the back-channel route accepts forms", async () => {
  const { gateway } = shared;
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  expect((await gateway.inject({ method: "POST", url: "/login/token", headers, payload: "code=1" })).statusCode).toBe(
    415,
  );
});

test("while the provider's keys are unavailable, a logout token gets 503", async () => {
  const { provider, sayEnded } = await setup({ lies: { instead: { "/jwks": (response) => response.destroy() } } });
  expect((await sayEnded(await logoutToken(provider))).json()).toMatchObject({ status: 503 });
});
