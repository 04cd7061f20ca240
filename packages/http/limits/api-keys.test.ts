import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fixedKeys, hashApiKey } from "../api-keys.ts";
import { buildHttpApp } from "../app.ts";
import { type Authenticate, bearerAuthentication, type Principal, requires } from "../callers.ts";
import { unauthenticated } from "../problems.ts";
import { limitKeys } from "./api-keys.ts";

let nowMs = 0;

beforeEach(() => {
  nowMs = 1_000;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
});
afterEach(() => void vi.restoreAllMocks());

const shop: Principal = { kind: "key", name: "shop", scopes: ["read"] };
const principals: Readonly<Record<string, Principal>> = {
  shop,
  first: { ...shop, keyId: "1" },
  second: { ...shop, keyId: "2" },
  fast: { ...shop, keyId: "3", perSecond: 5 },
  player: { kind: "user", name: "user:u_1", userId: "u_1", roles: ["USER"] },
};

const byName: Authenticate = ({ headers }) => {
  const principal = principals[headers.authorization ?? ""];
  if (!principal) throw unauthenticated("nobody");
  return principal;
};

async function setup({ perSecond = 2, authenticate = byName } = {}) {
  const app = await buildHttpApp({ title: "test", version: "0", log: { level: "silent" } });
  const limited = limitKeys(authenticate, { perSecond });
  const schema = { hide: true };
  app.get("/read", { ...requires(limited, { key: "read", user: "any" }), schema }, async () => ({}));
  app.get("/write", { ...requires(limited, { key: "points:write" }), schema }, async () => ({}));
  return {
    get: (authorization: string, url = "/read") => app.inject({ url, headers: { authorization } }),
    async statuses(caller: string, count: number) {
      const responses = [];
      for (let n = 0; n < count; n++) responses.push((await this.get(caller)).statusCode);
      return responses;
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}

test("a key over its rate gets 429 with Retry-After and the limit, and is served again after that time", async () => {
  await using t = await setup();
  expect(await t.statuses("shop", 4)).toEqual([200, 200, 200, 429]);
  const refused = await t.get("shop");
  expect(refused.json()).toMatchObject({
    code: "rate-limited",
    detail: "the API key of shop is over its rate of 2 requests per second to one process; try again in 1 s",
  });
  expect(refused.headers).toMatchObject({
    "retry-after": "1",
    "ratelimit-policy": '"key";q=6;w=2',
    ratelimit: '"key";r=0;t=2',
  });
  nowMs += 1_000;
  expect(await t.statuses("shop", 3)).toEqual([200, 200, 429]);
});

test("every key has a bound of its own, and players have none here", async () => {
  await using t = await setup();
  expect(await t.statuses("first", 4)).toEqual([200, 200, 200, 429]);
  expect(await t.statuses("second", 4)).toEqual([200, 200, 200, 429]);
  expect(await t.statuses("player", 20)).toEqual(Array(20).fill(200));
});

test("the rate of a key comes before that of the service", async () => {
  await using t = await setup();
  expect(await t.statuses("fast", 7)).toEqual([200, 200, 200, 200, 200, 200, 429]);
  await using unbounded = await setup({ perSecond: 0 });
  expect(await unbounded.statuses("shop", 100)).toEqual(Array(100).fill(200));
  expect(await unbounded.statuses("fast", 7)).toContain(429);
});

test("rejected requests count, and a steady caller at the rate is never refused", async () => {
  await using t = await setup();
  for (let n = 0; n < 3; n++) expect((await t.get("shop", "/write")).statusCode).toBe(403);
  expect((await t.get("shop", "/write")).statusCode).toBe(429);
  for (let n = 0; n < 100; n++) {
    nowMs += 500;
    expect((await t.get("second")).statusCode).toBe(200);
  }
});

test("keys that are looked up first are bounded too", async () => {
  const find = fixedKeys([{ holder: "shop", scopes: ["read"], sha256: hashApiKey("tdk_a") }]);
  const authenticate = bearerAuthentication({
    verifyApiKey: async (presented) => find(presented),
    verifyToken: () => {
      throw unauthenticated("no tokens");
    },
  });
  await using t = await setup({ authenticate, perSecond: 1 });
  expect(await t.statuses("Bearer tdk_a", 3)).toEqual([200, 200, 429]);
});
