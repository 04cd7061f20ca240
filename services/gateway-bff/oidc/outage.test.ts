import { gzipSync } from "node:zlib";
import { until } from "@todoke/kernel/testing";
import { expect, onTestFinished, test } from "vitest";
import { callTimeoutMs } from "./provider-fetch.ts";
import { startGateway } from "./testing/gateway.ts";
import { type Answering, type Lies, startLyingProvider, wrongAnswers } from "./testing/lying-provider.ts";

async function setup(lies: Lies = {}, { now }: { now?: () => number } = {}) {
  const provider = await startLyingProvider(lies);
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const gateway = await startGateway({ issuer: provider.issuer, ...(now && { now }) });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { provider, gateway, browser: gateway.browser() };
}

const metadata = "/.well-known/openid-configuration";
const away = { status: 503, code: "identity-provider-unavailable" };

test("logins work without a restart once a provider that was down is up", async () => {
  const { provider, gateway, browser } = await setup();
  await provider.down();
  const refused = await browser.get("/login");
  expect(refused.json()).toMatchObject(away);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  const page = await gateway.browser({ accept: "text/html" }).get("/login");
  expect(page.statusCode).toBe(503);
  expect(page.body).toContain('href="/login"');
  await provider.up();
  await until("logins work again", async () => (await browser.get("/login")).statusCode === 303);
  expect((await browser.logIn()).statusCode).toBe(303);
});

test("concurrent logins share one metadata request, and a failure pauses them", async () => {
  const clock = { ms: 0 };
  const lies = { instead: { [metadata]: wrongAnswers.serverError } };
  const { provider, browser } = await setup(lies, { now: () => clock.ms });
  const answers = await Promise.all(Array.from({ length: 50 }, () => browser.get("/login")));
  for (const answer of answers) expect(answer.json()).toMatchObject(away);
  expect((await browser.get("/login")).json()).toMatchObject(away);
  clock.ms = 999;
  expect((await browser.get("/login")).json()).toMatchObject(away);
  expect(provider.callsOf(metadata)).toBe(1);
  clock.ms = 1_000;
  expect((await browser.get("/login")).json()).toMatchObject(away);
  expect(provider.callsOf(metadata)).toBe(2);
});

test("a provider that fails during a login gives 503, and the next login works", async () => {
  const { provider, gateway, browser } = await setup();
  const callback = await browser.toCallback();
  await provider.down();
  const answer = await browser.get(callback);
  expect(answer.json()).toMatchObject(away);
  expect(answer.headers["retry-after"]).toBeDefined();
  expect((await gateway.rows()).sessions).toBe(0);
  await provider.up();
  expect((await browser.logIn()).statusCode).toBe(303);
});

test("a provider that redirects with temporarily_unavailable gives 503", async () => {
  const { browser } = await setup({ callback: (answer) => answer.set("error", "temporarily_unavailable") });
  expect((await browser.logIn()).json()).toMatchObject(away);
});

test.each<[string, keyof typeof wrongAnswers, number]>([
  [metadata, "hangsUp", 503],
  [metadata, "notJson", 503],
  [metadata, "otherType", 503],
  [metadata, "megabyte", 503],
  [metadata, "elsewhere", 503],
  ["/token", "hangsUp", 503],
  ["/token", "serverError", 503],
  ["/token", "notJson", 502],
  ["/token", "otherType", 502],
  ["/token", "megabyte", 502],
  ["/token", "elsewhere", 502],
  ["/jwks", "hangsUp", 503],
  ["/jwks", "serverError", 503],
  ["/jwks", "notJson", 502],
  ["/jwks", "otherType", 502],
  ["/jwks", "megabyte", 502],
  ["/jwks", "elsewhere", 502],
])("a bad response of %s (%s) opens no session, and the next login works", async (path, wrong, status) => {
  const { provider, gateway, browser } = await setup();
  let lying = true;
  provider.lies = { instead: { [path]: (response) => lying && wrongAnswers[wrong](response) } };
  const answer = path === metadata ? await browser.get("/login") : await browser.logIn();
  expect(answer.statusCode, answer.body).toBe(status);
  expect(browser.cookies.has("__Host-todoke")).toBe(false);
  expect((await gateway.rows()).sessions).toBe(0);
  lying = false;
  await until("logins work again", async () => (await browser.get("/login")).statusCode === 303);
  expect((await browser.logIn()).statusCode).toBe(303);
  if (provider.secrets.length > 0) gateway.expectUnseen(provider.secrets);
});

test("a silent provider times out after 5 s at every endpoint", async () => {
  expect(callTimeoutMs).toBe(5_000);
  const silent = async (path: string) => {
    const { browser } = await setup({ instead: { [path]: wrongAnswers.never } });
    const begun = performance.now();
    const answer = path === metadata ? await browser.get("/login") : await browser.logIn();
    expect(answer.json()).toMatchObject(away);
    // A busy machine needs time for the rest of a login; the default timeout of `fetch` is five minutes.
    expect(performance.now() - begun).toBeLessThan(60_000);
  };
  await Promise.all([metadata, "/token", "/jwks"].map(silent));
});

test.each([
  ["as it is", {}],
  ["compressed to almost nothing", { "content-encoding": "gzip" }],
])("a response past the size limit, %s, is not read", async (_name, headers) => {
  const { provider, browser } = await setup();
  const honest = (await (await fetch(provider.issuer + metadata)).json()) as object;
  const text = JSON.stringify({ ...honest, padding: "x".repeat(300_000) });
  const body = "content-encoding" in headers ? gzipSync(text) : text;
  const large: Answering = (response) =>
    response.writeHead(200, { "content-type": "application/json", ...headers }).end(body);
  provider.lies = { instead: { [metadata]: large } };
  expect((await browser.get("/login")).json()).toMatchObject(away);
});

test("metadata of another issuer is refused", async () => {
  const { browser } = await setup({ metadata: { issuer: "https://other.example" } });
  expect((await browser.get("/login")).json()).toMatchObject(away);
});

test("plain http to another machine is refused", async () => {
  const { browser } = await setup({ metadata: { token_endpoint: "http://192.0.2.1/token" } });
  expect((await browser.logIn()).json()).toMatchObject({ status: 502, code: "identity-not-proven" });
});

test("a rotation of the provider's keys fails no login", async () => {
  const { provider, gateway, browser } = await setup({}, { now: () => 0 });
  expect((await browser.logIn()).statusCode).toBe(303);
  await provider.rotateKeys();
  const many = await Promise.all(Array.from({ length: 8 }, () => gateway.browser().logIn()));
  expect(many.map((answer) => answer.statusCode)).toEqual(Array(8).fill(303));
  // The first look, and one more for the new key, however many needed it.
  expect(provider.callsOf("/jwks")).toBe(2);
});

test("a flood of tokens with invented key IDs causes one reload of the keys", async () => {
  const clock = { ms: 0 };
  const { provider, gateway, browser } = await setup({}, { now: () => clock.ms });
  expect((await browser.logIn()).statusCode).toBe(303);
  provider.lies = { header: { kid: "invented" } };
  const together = () => Promise.all(Array.from({ length: 10 }, () => gateway.browser().logIn()));
  const first = await together();
  clock.ms = 9_999;
  for (const answer of [...first, ...(await together())]) {
    expect(answer.json()).toMatchObject({ code: "identity-not-proven" });
  }
  expect(provider.callsOf("/jwks")).toBe(2);
  provider.lies = {};
  expect((await browser.logIn()).statusCode).toBe(303);
});
