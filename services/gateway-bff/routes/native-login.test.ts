import { hash, randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { isNativeRedirect } from "../config.ts";
import { startGateway } from "../oidc/testing/gateway.ts";
import { type Lies, startLyingProvider } from "../oidc/testing/lying-provider.ts";

async function setup(lies: Lies = {}) {
  const provider = await startLyingProvider(lies);
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const gateway = await startGateway({ issuer: provider.issuer, nativeRedirects: ["com.example.game:"] });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const fetchToken = (payload: object) => gateway.inject({ method: "POST", url: "/login/token", payload });
  return { provider, gateway, browser: gateway.browser(), fetchToken };
}

const newVerifier = () => randomBytes(32).toString("base64url");

function queryFor(verifier: string, change: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    client: "native",
    redirect_uri: "http://127.0.0.1:51004/done",
    code_challenge: hash("sha256", verifier, "base64url"),
    state: "of the game",
    ...change,
  });
  return `?${query}`;
}

const endOf = (answer: { headers: Record<string, unknown> }) => new URL(String(answer.headers.location));

test("a native client logs in through the browser and gets a session token", async () => {
  const { provider, gateway, browser, fetchToken } = await setup();
  const verifier = newVerifier();
  const done = await browser.logIn(queryFor(verifier));
  const end = endOf(done);
  expect(done.statusCode).toBe(303);
  expect(end.origin + end.pathname).toBe("http://127.0.0.1:51004/done");
  expect(end.searchParams.get("state")).toBe("of the game");
  expect(browser.cookies.has("__Host-todoke")).toBe(false);
  expect((await gateway.rows()).sessions).toBe(0);

  const answer = await fetchToken({ code: end.searchParams.get("code"), code_verifier: verifier });
  expect(answer.statusCode).toBe(200);
  expect(answer.headers["set-cookie"]).toBeUndefined();
  expect(answer.headers["cache-control"]).toBe("no-store");
  const { session_token, token_type, expires_at } = answer.json();
  expect(token_type).toBe("Bearer");
  expect(Date.parse(expires_at)).toBeGreaterThan(Date.now() + 11 * 3_600_000);
  const authorization = `Bearer ${session_token}`;
  const whoami = () => gateway.inject({ url: "/whoami", headers: { authorization } });
  expect((await whoami()).json()).toEqual({ caller: "user:user-alice" });
  expect(await gateway.sessions.find(session_token)).toMatchObject({ client: "native" });

  expect((await gateway.inject({ method: "POST", url: "/logout", headers: { authorization } })).statusCode).toBe(200);
  expect((await whoami()).statusCode).toBe(401);
  gateway.expectUnseen(provider.secrets);
});

test("a code opens one session, and only with the verifier of its challenge", async () => {
  const { gateway, browser, fetchToken } = await setup();
  const log = async (verifier: string) => endOf(await browser.logIn(queryFor(verifier))).searchParams.get("code");
  const verifier = newVerifier();
  const body = { code: await log(verifier), code_verifier: verifier };
  const many = await Promise.all(Array.from({ length: 10 }, () => fetchToken(body)));
  expect(many.map((answer) => answer.statusCode).sort()).toEqual([200, ...Array(9).fill(400)]);
  expect((await fetchToken(body)).json()).toMatchObject({ status: 400, code: "native-code-refused" });
  expect((await gateway.rows()).sessions).toBe(1);

  // A wrong verifier uses the code up, so its owner must log in again.
  const caught = { code: await log(verifier), code_verifier: newVerifier() };
  expect((await fetchToken(caught)).json()).toMatchObject({ code: "native-code-refused" });
  expect((await fetchToken({ ...caught, code_verifier: verifier })).json()).toMatchObject({
    code: "native-code-refused",
  });
  expect((await gateway.rows()).sessions).toBe(1);
});

test("a code expires after a minute", async () => {
  const { gateway, browser, fetchToken } = await setup();
  const verifier = newVerifier();
  const [{ begun }] = (await gateway.db.query("select clock_timestamp()::text as begun")).rows;
  const code = endOf(await browser.logIn(queryFor(verifier))).searchParams.get("code");
  // A minute from when it was made, whenever that was.
  const { rows } = await gateway.db.query(
    `select expires_at between $1::timestamptz + interval '60 s' and clock_timestamp() + interval '60 s' as in_time
       from one_time`,
    [begun],
  );
  expect(rows).toEqual([{ in_time: true }]);
  await gateway.db.query("update one_time set expires_at = now()");
  expect((await fetchToken({ code, code_verifier: verifier })).json()).toMatchObject({ code: "native-code-refused" });
});

test("a failed native login redirects with an error", async () => {
  const refuse: Lies = { callback: (answer) => answer.set("error", "access_denied") };
  const { provider, browser } = await setup(refuse);
  const errorOf = async () => Object.fromEntries(endOf(await browser.logIn(queryFor(newVerifier()))).searchParams);
  expect(await errorOf()).toEqual({ error: "access_denied", state: "of the game" });
  provider.lies = { claims: { aud: "another" } };
  expect(await errorOf()).toEqual({ error: "server_error", state: "of the game" });
  provider.lies = { instead: { "/token": (response) => response.destroy() } };
  expect(await errorOf()).toEqual({ error: "temporarily_unavailable", state: "of the game" });
});

test.each([
  ["http://[::1]:8000/", true],
  ["http://127.0.0.1/", true],
  ["com.example.game:/done", true],
  ["https://game.example/done", true],
  ["http://localhost:8000/", false], // A name: RFC 8252, section 8.3.
  ["https://127.0.0.1:8000/", false],
  ["http://127.0.0.1.evil.example/", false],
  ["http://127.0.0.1@evil.example/", false],
  ["http://evil.example#@127.0.0.1/", false],
  ["http://evil.example\\@127.0.0.1/", false],
  ["https://evil.example/", false],
  ["https://game.example/done?more", false],
  ["https://game.example/done/", false],
  ["com.example.other:/done", false],
  ["javascript:alert(1)", false],
  ["data:text/html,x", false],
  ["//127.0.0.1/", false],
  ["/done", false],
  ["", false],
  ["http://127.0.0.1:1/\r\nSet-Cookie: a=b", false],
  [`http://127.0.0.1:1/${"a".repeat(600)}`, false],
])("a native login with the redirect %j is allowed: %s", (address, allowed) => {
  const known = ["com.example.game:", "https://game.example/done", "javascript:", "data:"];
  expect(isNativeRedirect(address, known)).toBe(allowed);
});

test.each([
  ["an address of a stranger", { redirect_uri: "https://evil.example/" }, "query.redirect_uri"],
  ["no address", { redirect_uri: "" }, "query.redirect_uri"],
  ["no challenge", { code_challenge: "" }, "query.code_challenge"],
  ["a challenge that is no SHA-256", { code_challenge: "plain" }, "query.code_challenge"],
])("a native login with %s is refused without a redirect", async (_name, change, field) => {
  const { gateway, browser } = await setup();
  const answer = await browser.get(`/login${queryFor(newVerifier(), change)}`);
  expect(answer.statusCode).toBe(400);
  expect(answer.json().errors).toMatchObject([{ field }]);
  expect(answer.headers.location).toBeUndefined();
  expect((await gateway.rows()).underWay).toBe(0);
});

test.each([
  ["a verifier too short", { code: "c", code_verifier: "short" }],
  ["a verifier with other signs", { code: "c", code_verifier: "%".repeat(43) }],
  ["more than is asked for", { code: "c", code_verifier: "v".repeat(43), user_id: "user-bob" }],
  ["nothing", {}],
])("a code with %s is refused by the schema", async (_name, body) => {
  const { fetchToken } = await setup();
  expect((await fetchToken(body)).json()).toMatchObject({ status: 400, code: "invalid-request" });
});

test.each([
  ["cross-site", "login"],
  ["same-site", "login"],
  [undefined, "login"],
  ["none", null],
  ["same-origin", null],
])("a native login started from %s has prompt=%s", async (site, prompt) => {
  const { gateway } = await setup();
  const browser = gateway.browser(site === undefined ? {} : { "sec-fetch-site": site });
  const begun = await browser.get(`/login${queryFor(newVerifier())}`);
  expect(endOf(begun).searchParams.get("prompt")).toBe(prompt);
  // A browser that logs in for itself is asked only if the provider does not know it.
  expect(endOf(await browser.get("/login")).searchParams.get("prompt")).toBeNull();
});
