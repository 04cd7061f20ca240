/** Hostile headers and cookies, at the gateway and at the services' own ports (reference 5.2, 5.3 and 5.4). */
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServiceName, startAll, tokenFor, type User } from "../all-services.ts";
import { parseStatus, send, sendRaw } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let [alice, admin]: User[] = [];
let bearer = "";
beforeAll(async () => {
  all = await startAll();
  [alice, admin] = [await all.createUser("alice"), await all.createUser("admin")];
  bearer = await all.openSession(alice as User);
});
afterAll(() => all[Symbol.asyncDispose]());

const serviceUrl = (wanted: ServiceName) => all.running.find(({ name }) => name === wanted)?.url ?? "";
const userIdOf = (user: User | undefined) => user?.userId ?? "";
const origin = "http://localhost:8080"; // The gateway's default origin.

const spoofedHeaders = [
  "X-User-Id",
  "x-user-id",
  "X-USER-ID",
  "X_User_Id",
  "X-User-Roles",
  "X-Internal-Token",
  "X-Internal-User",
  "X-Forwarded-User",
  "X-Forwarded-For",
  "X-Forwarded-Host",
  "X-Real-IP",
  "X-Original-URL",
  "X-Rewrite-URL",
  "Forwarded",
];

/** Sends repeated headers, connection headers and trailers, which a lenient proxy would forward. */
async function sendTricky(
  url: string,
  headers: Record<string, string | string[]>,
  trailers: Record<string, string> = {},
) {
  const result = Promise.withResolvers<{ status: number; body: string }>();
  // A new connection: the agent must not reuse it.
  const outgoing = request(url, {
    method: "PATCH",
    agent: false,
    headers: { "content-type": "application/json", ...headers },
  });
  outgoing.on("error", result.reject).on("response", async (response) => {
    result.resolve({ status: response.statusCode ?? 0, body: await text(response) });
  });
  outgoing.write(`{"display_name":"Tricked"}`);
  outgoing.addTrailers(trailers);
  outgoing.end();
  return result.promise;
}

test.each(spoofedHeaders)("%s does not make a player an admin, at the gateway or at a service", async (name) => {
  const headers = { [name]: userIdOf(admin) };
  expect((await send(`${serviceUrl("gateway-bff")}/v1/me`, { headers })).status).toBe(401);
  expect(JSON.parse((await send(`${serviceUrl("gateway-bff")}/v1/me`, { headers, bearer })).text).user_id).toBe(
    userIdOf(alice),
  );
  expect((await send(`${serviceUrl("gateway-bff")}/v1/admin/users`, { headers, bearer })).status).toBe(403);
  for (const [service, path] of [
    ["account", `/users/${userIdOf(admin)}`],
    ["entitlement", `/v1/users/${userIdOf(admin)}/entitlements`],
    ["notification", `/v1/users/${userIdOf(admin)}/inbox`],
    ["points", `/v1/points/users/${userIdOf(admin)}/balance`],
  ] as const) {
    expect((await send(serviceUrl(service) + path, { headers })).status, service).toBe(401);
    const token = await tokenFor(service, alice);
    expect((await send(serviceUrl(service) + path, { headers, bearer: token })).status, service).toBe(403);
  }
});

test("repeated headers, connection headers and trailers do not change who the caller is", async () => {
  const spoof = { "X-User-Id": userIdOf(admin), "X-User-Roles": "ADMIN" };
  const mine = { authorization: `Bearer ${bearer}`, "if-match": '"1"' };
  for (const url of [
    `${serviceUrl("gateway-bff")}/v1/users/${userIdOf(admin)}`,
    `${serviceUrl("account")}/users/${userIdOf(admin)}`,
  ]) {
    const isGateway = url.includes("/v1/");
    const headers = isGateway ? mine : { ...mine, authorization: `Bearer ${await tokenFor("account", alice)}` };
    const twice = { "X-User-Id": [userIdOf(admin), userIdOf(alice)], "X-User-Roles": ["USER", "ADMIN"] };
    expect((await sendTricky(url, { ...headers, ...twice })).status).toBe(403);
    const hop = "close, X-User-Id, Authorization, X-Request-Id";
    expect((await sendTricky(url, { ...headers, ...spoof, connection: hop })).status).toBe(403);
    const trailer = { "transfer-encoding": "chunked", trailer: "X-User-Id, Authorization" };
    expect((await sendTricky(url, { ...headers, ...trailer }, spoof)).status).toBe(403);
    // A credential in a trailer does not count.
    const late = await sendTricky(url, { ...trailer, "if-match": '"1"' }, { Authorization: headers.authorization });
    expect(late.status).toBe(401);
  }
  const { rows } = await all.db.query(`select from account.users where display_name = 'Tricked'`);
  expect(rows).toEqual([]);
});

test("two Authorization headers never give the second one's identity", async () => {
  const other = await all.openSession(admin as User);
  const received = await sendRaw(serviceUrl("gateway-bff"), [
    "GET /v1/me HTTP/1.1",
    "Host: localhost",
    "Connection: close",
    `Authorization: Bearer ${bearer}`,
    `Authorization: Bearer ${other}`,
  ]);
  // Node passes on the first header and drops the rest.
  expect([200, 400, 401]).toContain(parseStatus(received));
  expect(received).not.toContain(userIdOf(admin));
});

test.each<[string, (cookie: string) => string, number]>([
  ["the session's cookie", (token) => `todoke=${token}`, 200],
  ["it among others", (token) => `a=1; todoke=${token}; b=2`, 200],
  ["two of its name", (token) => `todoke=${token}; todoke=tds_${"A".repeat(43)}`, 401],
  ["two of its name, the planted one first", (token) => `todoke=tds_${"A".repeat(43)}; todoke=${token}`, 401],
  ["the same twice", (token) => `todoke=${token}; todoke=${token}`, 401],
  ["one that a sibling could plant", (token) => `Todoke=${token}`, 401],
  ["one with a prefix", (token) => `__Secure-todoke=${token}`, 401],
  ["one in quotes", (token) => `todoke="${token}"`, 401],
  ["one of 8 kB", () => `todoke=tds_${"A".repeat(8_192)}`, 401],
  ["8 kB of others besides", (token) => `a=${"A".repeat(8_192)}; todoke=${token}`, 200],
])("with %s", async (_what, cookie, status) => {
  const response = await send(`${serviceUrl("gateway-bff")}/v1/me`, { headers: { cookie: cookie(bearer) } });
  expect(response.status).toBe(status);
});

test("oversized cookies get 431, and the session stays valid", async () => {
  const lines = ["GET /v1/me HTTP/1.1", "Host: localhost", `Cookie: todoke=${bearer}; a=${"A".repeat(20_000)}`];
  expect(parseStatus(await sendRaw(serviceUrl("gateway-bff"), lines))).toBe(431);
  expect((await send(`${serviceUrl("gateway-bff")}/v1/me`, { bearer })).status).toBe(200);
});

const evil = { origin: "https://app.evil" };

test.each<[string, Record<string, string>]>([
  ["nothing but the cookie", {}],
  ["the origin of another site", { ...evil, "x-todoke-request": "1" }],
  ["no origin at all", { "x-todoke-request": "1" }],
  ["Origin: null", { origin: "null", "x-todoke-request": "1" }],
  ["a site that begins like ours", { origin: `${origin}.evil`, "x-todoke-request": "1" }],
  ["a page of a sibling", { origin, "sec-fetch-site": "same-site", "x-todoke-request": "1" }],
  ["a form of text/plain that is JSON", { ...evil, "content-type": "text/plain" }],
  ["a form", { ...evil, "content-type": "application/x-www-form-urlencoded" }],
])("a cross-site request with %s is rejected on every route", async (_what, headers) => {
  const unsafe = all.running
    .filter(({ name }) => name === "gateway-bff")
    .flatMap(({ routes }) => routes.filter(({ method, route }) => method !== "GET" && !route.config?.rule?.isPublic));
  expect(unsafe.length).toBeGreaterThan(5);
  for (const { method, route } of unsafe) {
    const path = route.url
      .replace(/:user_id(\([^)]*\))?/, userIdOf(alice))
      .replace(":session_id", randomUUID())
      .replace(":service", "points")
      .replace(/:batch_id(\([^)]*\))?/, "1")
      .replace(/:(key_)?id(\([^)]*\))?/, randomUUID())
      .replace(/:instrument(\([^)]*\))?/, "BTC-USD")
      .replace(/:table(\([^)]*\))?/, "outbox_events")
      .replace(":mode", "duel")
      .replace(/:ticket_id(\([^)]*\))?/, `duel.${"a".repeat(28)}`)
      .replace("::", ":");
    const response = await send(serviceUrl("gateway-bff") + path, {
      method,
      headers: { cookie: `todoke=${bearer}`, "idempotency-key": "k", ...headers },
      ...(method !== "DELETE" && { body: { reason: "forged" } }),
    });
    expect([path, response.status, response.code]).toEqual([path, 403, "csrf-refused"]);
  }
  expect((await send(`${serviceUrl("gateway-bff")}/v1/me`, { bearer })).status).toBe(200);
});

test("no route of any service allows a cross-origin read or answers a preflight", async () => {
  const asking = { ...evil, "access-control-request-method": "POST", cookie: `todoke=${bearer}` };
  for (const { url, routes } of all.running)
    for (const { route } of routes) {
      const path = route.url.replace(/:\w+(\([^)]*\))?/g, "x").replace("::", ":");
      if (path.endsWith("/stream")) continue; // A stream has no end.
      for (const method of ["OPTIONS", "GET"]) {
        const { status, headers } = await send(url + path, { method, headers: asking });
        if (method === "OPTIONS") expect([404, 405], path).toContain(status);
        expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
      }
    }
});
