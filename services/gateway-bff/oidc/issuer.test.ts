/**
 * Logins and logouts with a real provider: the embedded one, or any other that the environment names
 * (packages/identity/testing/external-provider.ts), for instance a Keycloak (`npm run interop -- keycloak`).
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type BrowserPage, externalProvider, openBrowser, startControlledProvider } from "@todoke/identity/testing";
import { until } from "@todoke/kernel/testing";
import { expect, onTestFinished, test } from "vitest";
import { refreshTokens } from "../workers/refresh-tokens.ts";
import { type Browser, startGateway } from "./testing/gateway.ts";

const external = externalProvider();
const origin = external?.origin ?? "http://localhost:8080";
const user = { username: "alice", password: "alice-demo" };

async function setup() {
  const listener = await listen();
  const provider = external ?? (await startControlledProvider({ origin, backchannelLogoutUri: listener.url }));
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const gateway = await startGateway({ issuer: provider.issuer, client: provider.client, origin });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  // What the provider tells us by itself goes the way that it goes over the net.
  listener.hear(async (payload) => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    return (await gateway.inject({ method: "POST", url: "/login/backchannel-logout", headers, payload })).statusCode;
  });
  return { gateway, provider };
}

/** Listens for back-channel logouts; another provider knows our origin only. */
async function listen() {
  let received: (body: string) => Promise<number> = async () => 503;
  const server = createServer(async (request, response) => {
    response.writeHead(await received(await text(request))).end();
  });
  server.listen(external ? Number(new URL(origin).port) : 0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/login/backchannel-logout`,
    hear: (listener: typeof received) => {
      received = listener;
    },
  };
}

async function logoutAddress(issuer: string): Promise<string> {
  const metadata = await fetch(`${issuer}/.well-known/openid-configuration`);
  const { end_session_endpoint } = (await metadata.json()) as { end_session_endpoint: string };
  return end_session_endpoint;
}

/** A person: one browser, of which the gateway sees one side and the provider the other. */
function person(gatewaySide: Browser) {
  const providerSide = openBrowser();

  /** Fills in the form of a page. */
  function send(page: BrowserPage, fields: Record<string, string>): Promise<BrowserPage> {
    const action = /<form[^>]*\saction="([^"]*)"/.exec(page.text)?.[1]?.replaceAll("&amp;", "&") ?? page.url.href;
    const inputs = page.text.matchAll(/<(?:input|button)[^>]*\sname="([^"]+)"[^>]*?(?:\svalue="([^"]*)")?[^>]*>/g);
    const known = [...inputs]
      .map(([, name = "", value = ""]) => [name, value] as const)
      .filter(([name]) => name !== "cancel");
    return providerSide.visit(new URL(action, page.url), { ...Object.fromEntries(known), ...fields });
  }

  async function begin(more = ""): Promise<BrowserPage> {
    const begun = await gatewaySide.get(`/login?returnTo=/games${more}`);
    expect(begun.statusCode, begun.body).toBe(303);
    return providerSide.visit(String(begun.headers.location));
  }

  const isBack = ({ url }: BrowserPage) => url.origin === origin;
  const arrive = ({ url }: BrowserPage) => gatewaySide.get(url.pathname + url.search);
  return { providerSide, send, begin, isBack, arrive };
}

test("a user logs in with a password, and again without one in the same browser", async () => {
  const { gateway } = await setup();
  const side = gateway.browser();
  const { send, begin, isBack, arrive } = person(side);
  const asked = await begin();
  expect(isBack(asked)).toBe(false);
  expect(isBack(await send(asked, { ...user, password: "a wrong one" }))).toBe(false);
  expect((await gateway.rows()).sessions).toBe(0);

  const landed = await arrive(await send(await begin(), user));
  expect(landed.headers.location, landed.body).toBe("/games");
  const { caller } = await side.whoami();
  expect(gateway.account.asked.at(-1)).toMatchObject({
    subject: expect.any(String),
    email: expect.stringContaining("@"),
  });

  const second = await begin();
  expect(isBack(second)).toBe(true);
  expect((await arrive(second)).statusCode).toBe(303);
  expect(await side.whoami()).toEqual({ caller });
  expect((await gateway.rows()).sessions).toBe(1);
});

test("the tokens of a session are refreshed", async () => {
  const { gateway } = await setup();
  const side = gateway.browser();
  const { send, begin, arrive } = person(side);
  await arrive(await send(await begin(), user));
  await gateway.db.query("update sessions set refresh_due_at = now() - interval '1 second'");
  const session = await gateway.sessions.find(side.cookies.get("todoke") ?? "");
  if (!session) throw new Error("no session");
  const before = await gateway.sessions.getTokens(session.sessionId);
  const errors: unknown[] = [];
  const refresh = refreshTokens({ ...gateway, onError: (error) => void errors.push(error) });
  refresh(session);
  await refresh[Symbol.asyncDispose]();
  expect(errors).toEqual([]);
  expect((await gateway.sessions.getTokens(session.sessionId))?.accessToken).not.toBe(before?.accessToken);
});

test("after a logout here and at the provider, the password is asked for again", async () => {
  const { gateway } = await setup();
  const side = gateway.browser();
  const { providerSide, send, begin, isBack, arrive } = person(side);
  await arrive(await send(await begin(), user));
  const answer = await side.post("/logout");
  expect(await side.whoami()).toMatchObject({ status: 401 });
  const asked = await providerSide.visit(answer.json().logout_url);
  if (!isBack(asked)) expect((await send(asked, { logout: "yes" })).status).toBeLessThan(400);
  expect(isBack(await begin())).toBe(false);
});

test("a logout at the provider ends the session here", async () => {
  const { gateway, provider } = await setup();
  const side = gateway.browser();
  const { providerSide, send, begin, arrive } = person(side);
  await arrive(await send(await begin(), user));
  expect((await gateway.rows()).sessions).toBe(1);
  const asked = await providerSide.visit(await logoutAddress(provider.issuer));
  await send(asked, { logout: "yes" });
  await until("the session has ended", async () => (await gateway.rows()).sessions === 0);
  expect(await side.whoami()).toMatchObject({ status: 401 });
});

test("logins work while the provider rotates its keys", async () => {
  const { gateway, provider } = await setup();
  const side = gateway.browser();
  const { send, begin, arrive } = person(side);
  await arrive(await send(await begin(), user));
  await provider.rotateKeys();
  expect((await arrive(await begin())).statusCode).toBe(303);
  expect((await gateway.rows()).sessions).toBe(1);
});

test("a fresh login asks for the password although the provider knows the browser", async () => {
  const { gateway } = await setup();
  const side = gateway.browser();
  const { send, begin, isBack, arrive } = person(side);
  await arrive(await send(await begin(), user));
  const asked = await begin("&reauthenticate=yes");
  expect(isBack(asked)).toBe(false);
  expect((await arrive(await send(asked, user))).statusCode).toBe(303);
  const session = await gateway.sessions.find(side.cookies.get("todoke") ?? "");
  expect(session?.authenticatedAgoMs).toBeLessThan(900_000);
});
