import { expect, onTestFinished, test } from "vitest";
import { startGateway } from "../oidc/testing/gateway.ts";
import { type Lies, startLyingProvider } from "../oidc/testing/lying-provider.ts";
import { accountInactive } from "../problems.ts";

async function setup({ lies = {}, origin }: { lies?: Lies; origin?: string } = {}) {
  const provider = await startLyingProvider(lies);
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const gateway = await startGateway({ issuer: provider.issuer, ...(origin && { origin }) });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { provider, gateway };
}

const session = "__Host-todoke";
const html = { accept: "text/html,application/xhtml+xml" };

test("a browser logs in, returns to its path and never gets a token of the provider", async () => {
  const { provider, gateway } = await setup();
  const browser = gateway.browser();
  const begun = await browser.get("/login?returnTo=/games%3Ftab%3D1");
  const asked = new URL(String(begun.headers.location)).searchParams;
  expect(Object.fromEntries(asked)).toMatchObject({
    response_type: "code",
    scope: "openid profile email",
    code_challenge_method: "S256",
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
    redirect_uri: "https://play.example/login/callback",
  });
  expect(begun.headers["set-cookie"]).toMatch(
    /^__Host-todoke-login=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/,
  );

  const done = await browser.logIn("?returnTo=/games%3Ftab%3D1");
  expect(done.statusCode).toBe(303);
  expect(done.headers.location).toBe("/games?tab=1");
  expect(done.headers["set-cookie"]).toMatch(
    /^__Host-todoke=tds_[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
  );
  expect(await browser.whoami()).toEqual({ caller: "user:user-alice" });
  gateway.expectUnseen(provider.secrets);
});

test("a landing page follows a login, so that the Strict cookie is sent", async () => {
  const { gateway } = await setup();
  const done = await gateway.browser(html).logIn("?returnTo=/games%3Fa%3D1%26b%3D%22%3E");
  expect(done.statusCode).toBe(200);
  expect(done.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(done.headers["referrer-policy"]).toBe("no-referrer");
  expect(done.body).toContain('content="0; url=/games?a=1&amp;b=%22%3E"');
});

test("on loopback over http the cookies have no prefix", async () => {
  const { gateway } = await setup({ origin: "http://localhost:8080" });
  const browser = gateway.browser();
  await browser.logIn();
  expect([...browser.cookies.keys()]).toEqual(["todoke-login", "todoke"]);
  expect(await browser.whoami()).toEqual({ caller: "user:user-alice" });
});

test("a callback opens one session, also if it is repeated concurrently", async () => {
  const { gateway } = await setup();
  const browser = gateway.browser();
  const callback = await browser.toCallback();
  const both = await Promise.all([browser.get(callback), browser.get(callback)]);
  expect(both.map((answer) => answer.statusCode).sort()).toEqual([303, 400]);
  const again = await browser.get(callback);
  expect(again.json()).toMatchObject({ status: 400, code: "login-not-under-way" });
  expect(await gateway.rows()).toEqual({ sessions: 1, underWay: 0 });
});

test.each([
  ["without a state", (query: URLSearchParams) => query.delete("state"), "invalid-request"],
  ["with an unknown state", (query: URLSearchParams) => query.set("state", "x".repeat(43)), "login-not-under-way"],
  ["with two states", (query: URLSearchParams) => query.append("state", "x"), "invalid-request"],
  ["with a state too long", (query: URLSearchParams) => query.set("state", "x".repeat(2_000)), "invalid-request"],
])("a callback %s opens no session", async (_name, change, code) => {
  const { gateway } = await setup();
  const browser = gateway.browser();
  const callback = new URL(await browser.toCallback(), gateway.origin);
  change(callback.searchParams);
  const answer = await browser.get(callback.pathname + callback.search);
  expect(answer.json()).toMatchObject({ status: 400, code });
  expect((await gateway.rows()).sessions).toBe(0);
});

test("a callback in another browser opens no session and uses the login up", async () => {
  const { gateway } = await setup();
  const [mallory, victim] = [gateway.browser(), gateway.browser()];
  const callback = await mallory.toCallback();
  for (const browser of [victim, mallory]) {
    const answer = await browser.get(callback);
    expect(answer.json()).toMatchObject({ status: 400, code: "login-not-under-way" });
    expect(browser.cookies.has(session)).toBe(false);
  }
  // Also if the victim has a pending login.
  await victim.toCallback();
  expect((await victim.get(await mallory.toCallback())).json()).toMatchObject({ code: "login-not-under-way" });
  expect((await gateway.rows()).sessions).toBe(0);
});

test("logins in two tabs of one browser both work", async () => {
  const { gateway } = await setup();
  const browser = gateway.browser();
  const [one, two] = [await browser.toCallback("?returnTo=/one"), await browser.toCallback("?returnTo=/two")];
  expect((await browser.get(one)).headers.location).toBe("/one");
  expect((await browser.get(two)).headers.location).toBe("/two");
  expect(await gateway.rows()).toEqual({ sessions: 1, underWay: 0 });
});

test("a login creates a new token and ends the browser's earlier session", async () => {
  const { gateway } = await setup();
  const browser = gateway.browser();
  await browser.logIn();
  const before = browser.cookies.get(session) ?? "";
  // The way back from another site comes without the session's cookie.
  const callback = await browser.toCallback();
  browser.cookies.delete(session);
  await browser.get(callback);
  const after = browser.cookies.get(session) ?? "";
  expect(after).not.toBe(before);
  expect(await gateway.sessions.find(before)).toBeUndefined();
  expect(await gateway.sessions.find(after)).toMatchObject({ userId: "user-alice", client: "browser" });

  // A cookie that was planted before the login is not used.
  const planted = gateway.browser();
  planted.cookies.set(session, `tds_${"A".repeat(43)}`);
  await planted.logIn();
  expect(planted.cookies.get(session)).not.toContain("AAAA");
});

test.each([
  ["an issuer that is not ours (mix-up)", (answer: URLSearchParams) => answer.set("iss", "https://other.example")],
  ["no issuer, where the provider promises to name it", (answer: URLSearchParams) => answer.delete("iss")],
  ["a code that is not its own", (answer: URLSearchParams) => answer.set("code", "code-of-mine")],
  ["no code", (answer: URLSearchParams) => answer.delete("code")],
  ["two codes", (answer: URLSearchParams) => answer.append("code", "another")],
  ["an ID token in the address", (answer: URLSearchParams) => answer.set("id_token", "eyJ.eyJ.x")],
  ["a JWT response, which was not asked for", (answer: URLSearchParams) => answer.set("response", "eyJ.eyJ.x")],
])("%s opens no session", async (_name, callback) => {
  const { provider, gateway } = await setup({ lies: { callback } });
  const browser = gateway.browser();
  const answer = await browser.logIn();
  expect([400, 502]).toContain(answer.statusCode);
  expect(browser.cookies.has(session)).toBe(false);
  expect(await gateway.rows()).toEqual({ sessions: 0, underWay: 0 });
  gateway.expectUnseen(provider.secrets);
});

test("a login refused by the provider is shown as a page in the user's language", async () => {
  const refuse = (answer: URLSearchParams) => {
    answer.delete("code");
    answer.set("error", "access_denied");
    answer.set("error_description", "<script>alert(1)</script>");
  };
  const { gateway } = await setup({ lies: { callback: refuse } });
  const problem = await gateway.browser().logIn();
  expect(problem.json()).toMatchObject({
    status: 403,
    code: "login-refused",
    detail: expect.stringContaining("access_denied"),
  });
  const page = await gateway.browser({ ...html, "accept-language": "ja" }).logIn();
  expect(page.statusCode).toBe(403);
  expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(page.body).toContain('href="/login">もう一度ログインする');
  expect(page.body).not.toContain("<script");
});

test("values of the address are escaped on the page", async () => {
  const { gateway } = await setup();
  const page = await gateway.browser(html).get("/login?%3Cscript%3Ealert(1)%3C/script%3E=1");
  expect(page.statusCode).toBe(400);
  expect(page.body).toContain("&lt;script&gt;");
  expect(page.body).not.toContain("<script");
});

test("the provider's error is shown only if it looks like a protocol code", async () => {
  const refuse = (answer: URLSearchParams) => answer.set("error", "<img src=x>\r\nSet-Cookie: a=b");
  const { gateway } = await setup({ lies: { callback: refuse } });
  const { detail } = (await gateway.browser().logIn()).json();
  expect(detail).toContain("no reason that can be shown");
});

test("account gets profile claims from the ID token or the userinfo endpoint", async () => {
  const { provider, gateway } = await setup({
    lies: { userInfo: { email: "a@example.com", email_verified: false, name: "Alice", locale: "ja_JP" } },
  });
  await gateway.browser().logIn();
  const who = { provider: provider.issuer, subject: "alice" };
  expect(gateway.account.asked.at(-1)).toEqual({
    ...who,
    email: "a@example.com",
    email_verified: false,
    display_name: "Alice",
    locale: "ja-JP",
  });

  provider.lies = {
    claims: { email: "b@example.com", email_verified: true, name: "x".repeat(5_000), locale: "\u0000" },
  };
  await gateway.browser().logIn();
  expect(gateway.account.asked.at(-1)).toEqual({ ...who, email: "b@example.com", email_verified: true });

  // A missing or wrong profile does not fail the login.
  provider.lies = { userInfo: { sub: "mallory", email: "m@example.com" } };
  expect((await gateway.browser().logIn()).statusCode).toBe(303);
  expect(gateway.account.asked.at(-1)).toEqual(who);
  provider.lies = { instead: { "/userinfo": (response) => response.destroy() } };
  expect((await gateway.browser().logIn()).statusCode).toBe(303);
  expect(gateway.errors).toHaveLength(2);
  gateway.expectUnseen(provider.secrets);
});

test("a suspended user gets a session that only allows a logout; a deleted one gets none", async () => {
  const { gateway } = await setup();
  gateway.account.say("alice", { status: "SUSPENDED", version: 2 });
  const browser = gateway.browser();
  expect((await browser.logIn()).statusCode).toBe(303);
  expect(await browser.whoami()).toMatchObject({ status: 403, code: accountInactive.kind.code });
  expect((await browser.post("/logout")).statusCode).toBe(200);

  gateway.account.say("alice", { status: "DELETED", version: 3 });
  expect((await gateway.browser().logIn()).json()).toMatchObject({ status: 403, code: "login-refused" });
  expect((await gateway.rows()).sessions).toBe(0);
});

test("while account is unavailable, logins get its problem", async () => {
  const { gateway } = await setup();
  gateway.account.fail(accountInactive("stands for any problem of account's"));
  const browser = gateway.browser();
  expect((await browser.logIn()).json()).toMatchObject({ detail: "stands for any problem of account's" });
  expect((await gateway.rows()).sessions).toBe(0);
  gateway.account.fail(undefined);
  expect((await browser.logIn()).statusCode).toBe(303);
});

test("a HEAD request neither starts nor uses up a login", async () => {
  const { gateway } = await setup();
  const browser = gateway.browser();
  const callback = await browser.toCallback();
  for (const url of ["/login", callback]) {
    expect((await browser.ask({ method: "HEAD", url })).statusCode).toBe(405);
  }
  expect((await browser.get(callback)).statusCode).toBe(303);
});

test("a login that takes longer than ten minutes opens no session", async () => {
  const { gateway } = await setup();
  const browser = gateway.browser();
  const callback = await browser.toCallback();
  const { rows } = await gateway.db.query("select extract(epoch from expires_at - now())::int as left from one_time");
  expect(rows[0].left).toBeGreaterThan(580);
  expect(rows[0].left).toBeLessThanOrEqual(600);
  await gateway.db.query("update one_time set expires_at = now()");
  expect((await browser.get(callback)).json()).toMatchObject({ code: "login-not-under-way" });
});

test("a fresh login needs a recent auth_time", async () => {
  const { provider, gateway } = await setup();
  const browser = gateway.browser();
  const { searchParams } = new URL(String((await browser.get("/login?reauthenticate=yes")).headers.location));
  expect([searchParams.get("prompt"), searchParams.get("max_age")]).toEqual(["login", "900"]);
  const now = Math.floor(Date.now() / 1_000);
  for (const auth_time of [undefined, now - 3_600]) {
    provider.lies = { claims: { auth_time } };
    expect((await browser.logIn("?reauthenticate=yes")).statusCode).toBe(502);
  }
  provider.lies = { claims: { auth_time: now } };
  expect((await browser.logIn("?reauthenticate=yes")).statusCode).toBe(303);
  const session = await gateway.sessions.find(browser.cookies.get("__Host-todoke") ?? "");
  expect(session?.authenticatedAgoMs).toBeLessThan(900_000);
  // Without auth_time an ordinary login works, and does not count as fresh.
  provider.lies = {};
  await browser.logIn();
  const unsaid = await gateway.sessions.find(browser.cookies.get("__Host-todoke") ?? "");
  expect(unsaid).not.toHaveProperty("authenticatedAgoMs");
});
