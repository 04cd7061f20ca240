/**
 * Headers and cookies as an attacker would write them, over HTTP at the gateway and at the services' own ports (reference 5.2,
 * 5.3 and 5.4). What each part refuses by itself is tested beside it; this is the whole.
 */
import { randomUUID } from "node:crypto";
import { request as send } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServiceName, startAll, tokenFor, type User } from "../all-services.ts";
import { ask, askRaw, statusOf } from "./asking.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let [alice, admin]: User[] = [];
let bearer = "";
beforeAll(async () => {
  all = await startAll();
  [alice, admin] = [await all.makeUser("alice"), await all.makeUser("admin")];
  bearer = await all.openSession(alice as User);
});
afterAll(() => all[Symbol.asyncDispose]());

const urlOf = (wanted: ServiceName) => all.running.find(({ name }) => name === wanted)?.url ?? "";
const idOf = (user: User | undefined) => user?.userId ?? "";
const origin = "http://localhost:8080"; // What the gateway is told that players see, where nothing is said.

const claimed = [
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

/** With headers twice, of the connection, or behind the body: what a lenient hop would let through. */
async function tricked(url: string, headers: Record<string, string | string[]>, trailers: Record<string, string> = {}) {
  const answer = Promise.withResolvers<{ status: number; body: string }>();
  // A connection of its own: what is said of it below is not known to the agent that would keep it.
  const outgoing = send(url, {
    method: "PATCH",
    agent: false,
    headers: { "content-type": "application/json", ...headers },
  });
  outgoing.on("error", answer.reject).on("response", async (response) => {
    answer.resolve({ status: response.statusCode ?? 0, body: await text(response) });
  });
  outgoing.write(`{"display_name":"Tricked"}`);
  outgoing.addTrailers(trailers);
  outgoing.end();
  return answer.promise;
}

test.each(claimed)("%s makes nobody into an admin, at the gateway or at a service", async (name) => {
  const headers = { [name]: idOf(admin) };
  expect((await ask(`${urlOf("gateway-bff")}/v1/me`, { headers })).status).toBe(401);
  expect(JSON.parse((await ask(`${urlOf("gateway-bff")}/v1/me`, { headers, bearer })).text).user_id).toBe(idOf(alice));
  expect((await ask(`${urlOf("gateway-bff")}/v1/admin/users`, { headers, bearer })).status).toBe(403);
  for (const [service, path] of [
    ["account", `/users/${idOf(admin)}`],
    ["entitlement", `/v1/users/${idOf(admin)}/entitlements`],
    ["notification", `/v1/users/${idOf(admin)}/inbox`],
    ["points", `/v1/points/users/${idOf(admin)}/balance`],
  ] as const) {
    expect((await ask(urlOf(service) + path, { headers })).status, service).toBe(401);
    const token = await tokenFor(service, alice);
    expect((await ask(urlOf(service) + path, { headers, bearer: token })).status, service).toBe(403);
  }
});

test("nor does a header that comes twice, belongs to the connection, or comes behind the body", async () => {
  const spoof = { "X-User-Id": idOf(admin), "X-User-Roles": "ADMIN" };
  const mine = { authorization: `Bearer ${bearer}`, "if-match": '"1"' };
  for (const url of [`${urlOf("gateway-bff")}/v1/users/${idOf(admin)}`, `${urlOf("account")}/users/${idOf(admin)}`]) {
    const isGateway = url.includes("/v1/");
    const headers = isGateway ? mine : { ...mine, authorization: `Bearer ${await tokenFor("account", alice)}` };
    const twice = { "X-User-Id": [idOf(admin), idOf(alice)], "X-User-Roles": ["USER", "ADMIN"] };
    expect((await tricked(url, { ...headers, ...twice })).status).toBe(403);
    const hop = "close, X-User-Id, Authorization, X-Request-Id";
    expect((await tricked(url, { ...headers, ...spoof, connection: hop })).status).toBe(403);
    const trailer = { "transfer-encoding": "chunked", trailer: "X-User-Id, Authorization" };
    expect((await tricked(url, { ...headers, ...trailer }, spoof)).status).toBe(403);
    // Who it is must be said before the body: a proof that follows it is none.
    const late = await tricked(url, { ...trailer, "if-match": '"1"' }, { Authorization: headers.authorization });
    expect(late.status).toBe(401);
  }
  const { rows } = await all.db.query(`select from account.users where display_name = 'Tricked'`);
  expect(rows).toEqual([]);
});

test("two Authorization headers are not a choice", async () => {
  const other = await all.openSession(admin as User);
  const heard = await askRaw(urlOf("gateway-bff"), [
    "GET /v1/me HTTP/1.1",
    "Host: localhost",
    "Connection: close",
    `Authorization: Bearer ${bearer}`,
    `Authorization: Bearer ${other}`,
  ]);
  // Node hands on the first and drops the rest; nobody is taken for both.
  expect([200, 400, 401]).toContain(statusOf(heard));
  expect(heard).not.toContain(idOf(admin));
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
  const answer = await ask(`${urlOf("gateway-bff")}/v1/me`, { headers: { cookie: cookie(bearer) } });
  expect(answer.status).toBe(status);
});

test("cookies past all bounds are refused as headers, and the session lives on", async () => {
  const lines = ["GET /v1/me HTTP/1.1", "Host: localhost", `Cookie: todoke=${bearer}; a=${"A".repeat(20_000)}`];
  expect(statusOf(await askRaw(urlOf("gateway-bff"), lines))).toBe(431);
  expect((await ask(`${urlOf("gateway-bff")}/v1/me`, { bearer })).status).toBe(200);
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
])("what another site can send, %s, changes nothing on any route and logs nobody out", async (_what, headers) => {
  const unsafe = all.running
    .filter(({ name }) => name === "gateway-bff")
    .flatMap(({ routes }) => routes.filter(({ method, route }) => method !== "GET" && !route.config?.rule?.isPublic));
  expect(unsafe.length).toBeGreaterThan(5);
  for (const { method, route } of unsafe) {
    const path = route.url
      .replace(/:user_id(\([^)]*\))?/, idOf(alice))
      .replace(":session_id", randomUUID())
      .replace(":mode", "duel")
      .replace(/:ticket_id(\([^)]*\))?/, `duel.${"a".repeat(28)}`)
      .replace("::", ":");
    const answer = await ask(urlOf("gateway-bff") + path, {
      method,
      headers: { cookie: `todoke=${bearer}`, "idempotency-key": "k", ...headers },
      ...(method !== "DELETE" && { body: { reason: "forged" } }),
    });
    expect([path, answer.status, answer.code]).toEqual([path, 403, "csrf-refused"]);
  }
  expect((await ask(`${urlOf("gateway-bff")}/v1/me`, { bearer })).status).toBe(200);
});

test("no route of any service lets another site read an answer, nor asks whether it may", async () => {
  const asking = { ...evil, "access-control-request-method": "POST", cookie: `todoke=${bearer}` };
  for (const { url, routes } of all.running)
    for (const { route } of routes) {
      const path = route.url.replace(/:\w+(\([^)]*\))?/g, "x").replace("::", ":");
      if (path.endsWith("/stream")) continue; // Refused or begun like the others, but without an end.
      for (const method of ["OPTIONS", "GET"]) {
        const { status, headers } = await ask(url + path, { method, headers: asking });
        if (method === "OPTIONS") expect([404, 405], path).toContain(status);
        expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
      }
    }
});
