import { buildHttpApp, type HttpApp, type LimitPolicy, problems, publicRoute, requires } from "@todoke/http";
import { testDatabase, until } from "@todoke/kernel/testing";
import { Type } from "typebox";
import { expect, test, vi } from "vitest";
import type { Limits } from "../config.ts";
import { decorateSession } from "../guard/session-guard.ts";
import type { Session } from "../sessions/index.ts";
import { type LimitOptions, limitRequests } from "./hook.ts";
import type { Limiter } from "./index.ts";
import { localLimiter } from "./local-limiter.ts";
import { postgresLimiter } from "./postgres.ts";

/** So long that the duration of a test changes only the seconds in the headers. */
const policy = (name: string, quota: number): LimitPolicy => ({ name, quota, windowMs: 3_600_000 });

/** Of six, three can be had at once; of the others more. */
const defaultLimits: Limits = {
  classes: {
    read: policy("read", 6),
    write: policy("write", 6),
    bulk: policy("bulk", 60),
    login: policy("login", 6),
    logout: policy("logout", 60),
  },
  address: policy("address", 300),
  trustedProxies: 0,
  inFlightMax: 500,
};

/** The caller is the one that the test names: `Authorization: Bearer alice`. */
const session = (userId: string): Session => ({
  sessionId: "s",
  userId,
  client: "native",
  status: "ACTIVE",
  roles: ["USER"],
  refreshDue: false,
});

async function setup() {
  const own = { name: "gateway-bff", dir: new URL("../migrations/", import.meta.url) };
  const t = await testDatabase({ schema: "gateway_bff", sets: [own] });
  const apps: HttpApp[] = [];

  /** Another gateway: it shares nothing with the others but the database. */
  async function gateway(options: Partial<LimitOptions> & { store?: Limiter } = {}) {
    const { store = postgresLimiter(t.open()), ...more } = options;
    const app = await buildHttpApp({ title: "test", version: "0", log: { level: "silent" } });
    apps.push(app);
    const lookedUp = vi.fn();
    const authenticate = async (request: Parameters<Parameters<typeof requires>[0]>[0]) => {
      lookedUp();
      const { authorization, cookie } = request.headers;
      const [, userId] = /^(?:Bearer |todoke=)(\w+)$/.exec(authorization ?? cookie ?? "") ?? [];
      if (!userId) throw problems.unauthenticated("log in first");
      request.session = session(userId);
      return { kind: "user", name: `user:${userId}`, userId, roles: ["USER"] } as const;
    };
    decorateSession(app);
    const onLimited = vi.fn();
    const limiter = localLimiter(store);
    // No store is too slow here, unless the test says when it is.
    limitRequests(app, {
      limiter,
      limits: defaultLimits,
      onError: () => {},
      onLimited,
      limiterTimeoutMs: 600_000,
      ...more,
    });
    const hidden = { schema: { hide: true } };
    const Body = Type.Object({ name: Type.String() });
    app.get("/livez", { ...publicRoute, ...hidden }, async () => ({}));
    app.get("/v1/things/:id", { ...publicRoute, ...hidden }, async () => ({}));
    app.get("/v1/files/a", { ...publicRoute, ...hidden }, async (_request, reply) =>
      reply
        .headers({ "cache-control": "public, max-age=31536000, immutable", "content-encoding": "br", etag: '"1"' })
        .send(Buffer.from("compressed")),
    );
    app.post("/v1/things", { ...publicRoute, schema: { hide: true, body: Body } }, async () => ({}));
    app.get("/login", { config: { ...publicRoute.config, limit: "login" }, ...hidden }, async () => ({}));
    app.get("/v1/mine", { ...requires(authenticate, { user: "any" }), ...hidden }, async () => ({}));
    app.get("/v1/users/:user_id", { ...requires(authenticate, { user: "own" }), ...hidden }, async () => ({}));
    app.post("/v1/bulk", { config: { ...publicRoute.config, limit: "bulk", units: 5 }, ...hidden }, async () => ({}));
    const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
    return {
      app,
      lookedUp,
      onLimited,
      get,
      as: (user: string, url = "/v1/mine", from = "203.0.113.1") =>
        get(url, { authorization: `Bearer ${user}`, "x-forwarded-for": from }),
      post: (url: string, payload: string) =>
        app.inject({ method: "POST", url, payload, headers: { "content-type": "application/json" } }),
    };
  }
  return {
    ...t,
    gateway,
    async [Symbol.asyncDispose]() {
      await Promise.all(apps.map((app) => app.close()));
      await t[Symbol.asyncDispose]();
    },
  };
}

const statusesOf = async (calls: readonly (() => Promise<{ statusCode: number }>)[]) => {
  const statuses: number[] = [];
  for (const call of calls) statuses.push((await call()).statusCode);
  return statuses;
};
/** Seconds that were counted a little earlier than they are checked. */
function expectNearly(actual: unknown, seconds: number): void {
  expect(Number(actual)).toBeLessThanOrEqual(seconds);
  expect(Number(actual)).toBeGreaterThan(seconds - 15);
}
const times = <T>(count: number, call: () => T) => Array.from({ length: count }, () => call);

test("every response has the RateLimit headers", async () => {
  await using t = await setup();
  const { get } = await t.gateway();
  const first = await get("/v1/things/1");
  expect(first.headers["ratelimit-policy"]).toBe('"read";q=6;w=3600, "address";q=300;w=3600');
  expect(first.headers.ratelimit).toBe('"read";r=2;t=900, "address";r=100;t=18');
  const second = String((await get("/v1/things/2")).headers.ratelimit);
  const [, read, address] = /^"read";r=1;t=(\d+), "address";r=99;t=(\d+)$/.exec(second) ?? expect.fail(second);
  expectNearly(read, 1_800);
  expectNearly(address, 36);
});

test("a request past the limit gets 429 with Retry-After before its body is read", async () => {
  await using t = await setup();
  const { post, onLimited } = await t.gateway();
  expect(await statusesOf(times(3, () => post("/v1/things", `{"name":"a"}`)))).toEqual([200, 200, 200]);
  const refused = await post("/v1/things", `{"not json`);
  expect(refused.statusCode).toBe(429);
  expect(refused.headers["content-type"]).toMatch(/^application\/problem\+json/);
  const { "retry-after": wait, ratelimit } = refused.headers;
  expectNearly(wait, 900);
  expect(refused.headers["ratelimit-policy"]).toBe('"write";q=6;w=3600');
  expectNearly(/^"write";r=0;t=(\d+)$/.exec(String(ratelimit))?.[1], 2_700);
  expect(refused.json()).toMatchObject({
    code: "rate-limited",
    detail: `at most 6 requests in 3600 s (write); try again in ${wait} s`,
    instance: refused.headers["x-request-id"],
  });
  expect(onLimited.mock.calls).toEqual([["write", "refused"]]);
});

test("several gateways and a restarted one share the count", async () => {
  await using t = await setup();
  const gateways = await Promise.all(times(3, () => t.gateway()).map((start) => start()));
  const answers = await Promise.all(
    gateways.flatMap(({ get }) => times(3, () => get("/v1/things/1")).map((call) => call())),
  );
  expect(answers.filter(({ statusCode }) => statusCode === 200).length).toBe(3);
  const again = await t.gateway();
  expect((await again.get("/v1/things/1")).statusCode).toBe(429);
});

test("a refusal in place of a file is neither compressed nor cached", async () => {
  await using t = await setup();
  const [first, second] = [await t.gateway(), await t.gateway()];
  expect(await statusesOf(times(3, () => first.get("/v1/files/a")))).toEqual([200, 200, 200]);
  const refused = await second.get("/v1/files/a");
  const { "cache-control": cached, "content-encoding": encoding, etag } = refused.headers;
  expect([refused.statusCode, cached, encoding, etag]).toEqual([429, "no-store", undefined, undefined]);
  expect(refused.json().code).toBe("rate-limited");
});

test("logins, reads, writes and bulk requests have a quota each", async () => {
  await using t = await setup();
  const { get, post } = await t.gateway();
  expect(await statusesOf(times(4, () => get("/v1/things/1")))).toEqual([200, 200, 200, 429]);
  expect(await statusesOf(times(4, () => get("/login")))).toEqual([200, 200, 200, 429]);
  expect(await statusesOf(times(4, () => post("/v1/things", `{"name":"a"}`)))).toEqual([200, 200, 200, 429]);
  // Of sixty, 21 can be had at once: four times five.
  expect(await statusesOf(times(5, () => post("/v1/bulk", "{}")))).toEqual([200, 200, 200, 200, 429]);
});

test("a route that counts more than its burst keeps the gateway from starting", async () => {
  await using t = await setup();
  const { app } = await t.gateway();
  const config = { ...publicRoute.config, units: 4 };
  expect(() => app.get("/v1/dear", { config, schema: { hide: true } }, async () => ({}))).toThrow(
    '/v1/dear counts as 4 calls, but at most 3 of "read" are available at once: raise GATEWAY_BFF_LIMIT_READ',
  );
});

test("a user has one quota over all addresses", async () => {
  await using t = await setup();
  const { as } = await t.gateway({ limits: { ...defaultLimits, trustedProxies: 1 } });
  const calls = [1, 2, 3, 4].map((n) => () => as("alice", "/v1/mine", `203.0.113.${n}`));
  expect(await statusesOf(calls)).toEqual([200, 200, 200, 429]);
  expect((await as("bob")).statusCode).toBe(200);
});

test("many accounts at one address share the address limit, without session look-ups", async () => {
  await using t = await setup();
  const { as, lookedUp } = await t.gateway({ limits: { ...defaultLimits, address: policy("address", 30) } });
  const players = Array.from({ length: 20 }, (_, n) => `player${n}`);
  expect(await statusesOf(players.map((name) => () => as(name)))).toEqual(players.map((_, n) => (n < 11 ? 200 : 429)));
  expect(lookedUp).toHaveBeenCalledTimes(11);
});

test("no session is looked up for a user past the limit", async () => {
  await using t = await setup();
  const { as, post, get, lookedUp } = await t.gateway();
  const statuses = await statusesOf(times(50, () => as("alice")));
  expect(statuses).toEqual(statuses.map((_, n) => (n < 3 ? 200 : 429)));
  expect(lookedUp).toHaveBeenCalledTimes(4); // The fourth was refused once it was known whose session it is.
  // Other quotas of the user, other users, and those without a session are as they were.
  const withCookie = (user: string) => get("/v1/mine", { cookie: `todoke=${user}` });
  expect(await statusesOf([...times(4, () => withCookie("carol")), () => withCookie("dave")])).toEqual([
    200, 200, 200, 429, 200,
  ]);
  expect((await as("bob")).statusCode).toBe(200);
  expect((await post("/v1/things", `{"name":"a"}`)).statusCode).toBe(200);
  expect((await get("/v1/mine")).statusCode).toBe(401);
});

test("without a trusted proxy X-Forwarded-For is ignored", async () => {
  await using t = await setup();
  const { get } = await t.gateway();
  const spoofed = ["203.0.113.1", "203.0.113.2, 198.51.100.1", "2001:db8::1", "garbage", "1.1.1.1,".repeat(50)];
  const calls = spoofed.map((header) => () => get("/v1/things/1", { "X-FORWARDED-FOR": header }));
  expect(await statusesOf(calls)).toEqual([200, 200, 200, 429, 429]);
});

test("no spelling of a path changes its limit", async () => {
  await using t = await setup();
  const { get } = await t.gateway();
  const ways = ["/%761/things/1", "/v1/things/1/", "//v1/things/1", "/v1/things/%31", "/v1/../v1/things/1"];
  expect(await statusesOf(ways.map((url) => () => get(url)))).toEqual([200, 404, 404, 429, 429]);
  expect((await get("/v1/things/1")).statusCode).toBe(429);
});

test("requests refused with 401, 404 or 405 are counted", async () => {
  await using t = await setup();
  const { app, get, lookedUp } = await t.gateway();
  const put = () => app.inject({ method: "PUT", url: "/v1/things" });
  expect(await statusesOf([() => get("/.env"), put, () => get("/v1/mine"), put, () => get("/v1/mine")])).toEqual([
    404, 405, 401, 429, 429,
  ]);
  const refused = await put();
  expect(refused.headers.allow).toBeUndefined();
  expectNearly(refused.headers["retry-after"], 900);
  expect(refused.json()).toMatchObject({ code: "rate-limited", instance: refused.headers["x-request-id"] });
  const stranger = await get("/v1/mine");
  expect(stranger.headers["www-authenticate"]).toBeUndefined();
  // He who is logged in is not held up by strangers at his address.
  expect((await get("/v1/mine", { authorization: "Bearer alice" })).statusCode).toBe(200);
  expect(lookedUp).toHaveBeenCalled();
});

test("a request refused with 403 is counted for its user", async () => {
  await using t = await setup();
  const { as } = await t.gateway();
  expect(await statusesOf(times(4, () => as("mallory", "/v1/users/alice")))).toEqual([403, 403, 403, 429]);
  expect((await as("mallory")).statusCode).toBe(429);
  expect((await as("alice", "/v1/users/alice")).statusCode).toBe(200);
});

test("health probes are never counted", async () => {
  await using t = await setup();
  const { get } = await t.gateway();
  const answers = await Promise.all(times(10, () => get("/livez")).map((call) => call()));
  expect(answers.map(({ statusCode, headers }) => [statusCode, headers.ratelimit])).toEqual(
    answers.map(() => [200, undefined]),
  );
});

const closed = async (db: { end(): Promise<void> }) => {
  await db.end();
  return db;
};

test.each(["away", "silent"])("while the limiter is %s, reads pass and logins and writes get 503", async (how) => {
  await using t = await setup();
  const away = async () => postgresLimiter((await closed(t.open())) as ReturnType<typeof t.open>);
  const store = how === "away" ? await away() : { take: () => new Promise<never>(() => {}) };
  const onError = vi.fn();
  const { get, post, as, onLimited } = await t.gateway({ store, onError, limiterTimeoutMs: 50 });
  const read = await get("/v1/things/1");
  expect([read.statusCode, read.headers.ratelimit]).toEqual([200, undefined]);
  expect((await as("alice")).statusCode).toBe(200);
  expect((await get("/.env")).statusCode).toBe(404);
  for (const refused of [await get("/login"), await post("/v1/things", `{"name":"a"}`), await post("/v1/bulk", "{}")]) {
    expect([refused.statusCode, refused.headers["retry-after"]]).toEqual([503, "1"]);
    expect(refused.json().code).toBe("unavailable");
  }
  expect(onLimited.mock.calls.map(([limit, result]) => `${limit} ${result}`)).toEqual([
    ...times(3, () => "read uncounted").map((text) => text()),
    "login uncounted",
    "write uncounted",
    "bulk uncounted",
  ]);
  // One line a second, which says how many.
  const countOf = ([error]: unknown[]) => Number(/for (\d+) requests/.exec(String(error))?.[1]);
  await until("all are reported", () => onError.mock.calls.reduce((sum, call) => sum + countOf(call), 0) === 6);
  expect(onError.mock.calls.length).toBeLessThan(6);
});

test.each(["late", "failing"])(
  "while the limiter is %s, one process grants at most the quota of reads",
  async (how) => {
    await using t = await setup();
    // Granted in the store, but too late to be received of: before, every such read passed.
    const late = { take: async () => new Promise<never>(() => {}) };
    const failing = { take: async () => Promise.reject(new Error("too many clients already")) };
    const onError = vi.fn();
    const { get, as, onLimited } = await t.gateway({
      store: { late, failing }[how] as Limiter,
      onError,
      limiterTimeoutMs: 1,
    });
    const burst = await Promise.all(times(500, () => get("/v1/things/1")).map((call) => call()));
    expect(burst.filter(({ statusCode }) => statusCode === 200).length).toBe(3);
    expect(burst.filter(({ statusCode }) => statusCode === 429).length).toBe(497);
    const user = await Promise.all(times(100, () => as("alice")).map((call) => call()));
    expect(user.filter(({ statusCode }) => statusCode === 200).length).toBe(3);
    const unknown = await Promise.all(times(100, () => get("/.env")).map((call) => call()));
    expect(unknown.filter(({ statusCode }) => statusCode !== 429).length).toBe(0);
    expect(onLimited.mock.calls.filter(([, result]) => result === "uncounted").length).toBe(6);
  },
);

test("an address past its limit of requests in flight is refused until one ends", async () => {
  await using t = await setup();
  const held = Promise.withResolvers<void>();
  const limits = {
    ...defaultLimits,
    classes: { ...defaultLimits.classes, read: policy("read", 60) },
    trustedProxies: 1,
    inFlightMax: 2,
  };
  const { app, get, onLimited } = await t.gateway({ limits });
  let begun = 0;
  const options = { ...publicRoute, schema: { hide: true } };
  app.get("/v1/held", options, async () => {
    begun++;
    await held.promise;
    return {};
  });
  const from = (address: string, url: string) => get(url, { "x-forwarded-for": address });
  const first = [1, 2].map(() => from("203.0.113.1", "/v1/held"));
  await until("two are in flight", () => begun === 2);
  const refused = await from("203.0.113.1", "/v1/things/1");
  expect([refused.statusCode, refused.json().code, refused.headers["retry-after"]]).toEqual([
    429,
    "too-many-in-flight",
    "1",
  ]);
  expect(onLimited.mock.calls).toEqual([["read", "refused"]]);
  expect((await from("203.0.113.1", "/livez")).statusCode).toBe(200);
  expect((await from("203.0.113.2", "/v1/things/1")).statusCode).toBe(200);
  held.resolve();
  expect((await Promise.all(first)).map(({ statusCode }) => statusCode)).toEqual([200, 200]);
  expect((await from("203.0.113.1", "/v1/things/1")).statusCode).toBe(200);
});

test("a granted stream does not count as a request in flight", async () => {
  await using t = await setup();
  const { app, get } = await t.gateway({ limits: { ...defaultLimits, inFlightMax: 1 } });
  const held = Promise.withResolvers<void>();
  let begun = 0;
  const config = { ...publicRoute.config, longLived: true };
  app.get("/v1/stream", { config, schema: { hide: true } }, async () => {
    begun++;
    await held.promise;
    return {};
  });
  const streams = [get("/v1/stream")];
  await until("the stream is open", () => begun === 1);
  expect((await get("/v1/things/1")).statusCode).toBe(200);
  held.resolve();
  await Promise.all(streams);
});
