import type { FastifyRequest } from "fastify";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { type AccessRule, bearerAuthentication, isAllowed, type Principal, publicRoute, requires } from "./callers.ts";
import { unauthenticated } from "./problems.ts";

const alice: Principal = { kind: "user", name: "user:alice", userId: "alice", roles: ["USER"] };
const admin: Principal = { kind: "user", name: "user:root", userId: "root", roles: ["USER", "ADMIN"] };
const viewer: Principal = { kind: "user", name: "user:vi", userId: "vi", roles: ["USER", "VIEWER"] };
const operator: Principal = { kind: "user", name: "user:op", userId: "op", roles: ["OPERATOR", "USER"] };
const shop: Principal = { kind: "key", name: "shop", scopes: ["read"] };
const gateway: Principal = { kind: "service", name: "service:gateway-bff" };

test.each<[Principal, AccessRule, string, boolean]>([
  [alice, { user: "own" }, "alice", true],
  [alice, { user: "own" }, "bob", false],
  [alice, { user: "any" }, "bob", true],
  [alice, { staff: "ADMIN" }, "alice", false],
  [alice, { key: "read", service: ["gateway-bff"] }, "alice", false],
  [admin, { staff: "ADMIN" }, "bob", true],
  [admin, { user: "own", staff: "ADMIN" }, "bob", true],
  [admin, { user: "own" }, "bob", false],
  [viewer, { staff: "VIEWER" }, "bob", true],
  [viewer, { staff: "OPERATOR" }, "bob", false],
  [operator, { staff: "VIEWER" }, "bob", true],
  [operator, { staff: "OPERATOR" }, "bob", true],
  [operator, { staff: "ADMIN" }, "bob", false],
  [admin, { staff: "VIEWER" }, "bob", true],
  [shop, { key: "read" }, "bob", true],
  [shop, { key: "points:write" }, "bob", false],
  [shop, { user: "any", staff: "ADMIN", service: ["shop"] }, "shop", false],
  [gateway, { service: ["gateway-bff"] }, "bob", true],
  [gateway, { service: ["account"] }, "bob", false],
  [gateway, { user: "any", staff: "ADMIN", key: "read" }, "bob", false],
  [alice, {}, "alice", false],
])("%o under %o about %s: %s", (principal, rule, user_id, may) => {
  expect(isAllowed(principal, rule, { user_id })).toBe(may);
});

test("the rule for a user's own data allows nobody on a route without a user", () => {
  expect(isAllowed(alice, { user: "own" }, {})).toBe(false);
});

async function setup(rule: AccessRule) {
  const app = await buildHttpApp({ title: "t", version: "0", log: { level: "silent" }, rules: true });
  const authenticate = bearerAuthentication({
    verifyApiKey: async (presented) => (presented === "tdk_shop" ? shop : undefined),
    verifyToken: (token) => {
      if (token === "eyJh.eyJz.alice") return alice;
      throw unauthenticated("not a token");
    },
  });
  const schema = { operationId: "see" };
  app.get("/users/:user_id", { ...requires(authenticate, rule), schema }, async ({ caller, principal }) => ({
    caller,
    kind: principal?.kind,
  }));
  const get = (user: string, authorization?: string, more = {}) =>
    app.inject({ url: `/users/${user}`, headers: { ...(authorization && { authorization }), ...more } });
  return { app, get, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
}

test("a route gets the caller of a key and of a token", async () => {
  await using t = await setup({ key: "read", user: "own" });
  expect((await t.get("bob", "Bearer tdk_shop")).json()).toEqual({ caller: "shop", kind: "key" });
  expect((await t.get("alice", "bearer eyJh.eyJz.alice")).json()).toEqual({ caller: "user:alice", kind: "user" });
  expect((await t.get("bob", "Bearer eyJh.eyJz.alice")).statusCode).toBe(403);
});

test("no header, an unknown key, a bad token and another scheme are 401", async () => {
  await using t = await setup({ key: "read", user: "own" });
  for (const authorization of [
    undefined,
    "Bearer tdk_other",
    "Bearer eyJh.eyJz.x",
    "Basic YTpi",
    "Bearer a b",
    "Bearer ",
  ]) {
    const response = await t.get("alice", authorization);
    expect([response.statusCode, response.json().code]).toEqual([401, "unauthenticated"]);
    expect(response.headers["www-authenticate"]).toBe("Bearer");
  }
});

test.each(["x-user-id", "X_User_Id", "x-user-roles", "x-internal-token", "x-forwarded-user"])(
  "the header %s proves nothing",
  async (name) => {
    await using t = await setup({ user: "any", staff: "ADMIN", service: ["gateway-bff"] });
    expect((await t.get("alice", undefined, { [name]: "alice" })).statusCode).toBe(401);
  },
);

test("an app does not start with a route that has no rule, and names it", async () => {
  await using app = await buildHttpApp({ title: "t", version: "0", log: { level: "silent" }, rules: true });
  app.get("/open", { ...publicRoute, schema: { operationId: "open" } }, async () => ({}));
  app.register(async (scope) => {
    scope.get("/forgotten", { schema: { operationId: "forgotten" } }, async () => ({}));
  });
  await expect(async () => app.ready()).rejects.toThrow("no access rule for GET /forgotten");
});

test("the log has rejected callers with address, and every call that only a staff role allows", async () => {
  const lines: string[] = [];
  const log = { stream: { write: (line: string) => void lines.push(line) } };
  await using app = await buildHttpApp({ title: "t", version: "0", log });
  const principals: Record<string, Principal> = { alice, admin };
  const authenticate = ({ headers }: FastifyRequest) => principals[String(headers["x-who"])] ?? alice;
  const schema = { operationId: "see" };
  app.get("/users/:user_id", { ...requires(authenticate, { user: "own", staff: "ADMIN" }), schema }, async () => ({}));
  const logged = async (who: string, user: string) => {
    lines.length = 0;
    await app.inject({ url: `/users/${user}`, headers: { "x-who": who } });
    return lines
      .map((line) => JSON.parse(line))
      .map(({ msg, address, caller, user_id }) => [msg, address, caller, user_id]);
  };
  expect(await logged("alice", "alice")).toEqual([]);
  expect(await logged("alice", "bob")).toEqual([["refused", "127.0.0.1", "user:alice", undefined]]);
  expect(await logged("admin", "root")).toEqual([]);
  expect(await logged("admin", "bob")).toEqual([["staff", "127.0.0.1", "user:root", "bob"]]);
});

test("below ADMIN, staff reads their own user and changes nothing of it", async () => {
  await using app = await buildHttpApp({ title: "t", version: "0", log: { level: "silent" } });
  const principals: Record<string, Principal> = { admin, operator };
  const authenticate = ({ headers }: FastifyRequest) => principals[String(headers["x-who"])] ?? alice;
  const guard = requires(authenticate, { staff: "OPERATOR" });
  const url = "/users/:user_id";
  for (const [method, operationId] of [
    ["GET", "see"],
    ["POST", "change"],
  ] as const)
    app.route({ method, url, ...guard, schema: { operationId }, handler: async () => ({}) });
  const call = async (who: string, method: "GET" | "POST", user: string) =>
    (await app.inject({ method, url: `/users/${user}`, headers: { "x-who": who } })).statusCode;
  expect(await call("operator", "GET", "op")).toBe(200);
  expect(await call("operator", "POST", "op")).toBe(403);
  expect(await call("operator", "POST", "alice")).toBe(200);
  expect(await call("admin", "POST", "root")).toBe(200);
});
