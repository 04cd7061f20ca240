import { randomBytes } from "node:crypto";
import { formatSigningKey, newSigningKey } from "@todoke/http";
import { MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { sharedRedis } from "@todoke/redis/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { configErrors, start } from "./main.ts";

const env = {
  LOG_LEVEL: "silent",
  GATEWAY_BFF_PORT: "0",
  GATEWAY_BFF_LIMIT_WAIT_MS: "60000", // A busy machine is not what these tests are about.
  GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
  GATEWAY_BFF_TOKEN_KEY: formatSigningKey(newSigningKey("k1")),
  OIDC_ISSUER: "http://127.0.0.1:1",
  OIDC_CLIENT_ID: "todoke",
  ACCOUNT_URL: "http://127.0.0.1:1",
};
const openBus = async () => memoryBus(new MemoryBroker());

test("the gateway starts, is ready and stops while every dependency is unavailable", async () => {
  await using t = await servicesDatabase(["gateway-bff"]);
  const here = { ...env, DATABASE_URL: t.url };
  const service = await start(here, { openBus });
  const ask = async (path: string) => {
    const answer = await fetch(service.url + path, { redirect: "manual" });
    return [answer.status, await answer.json()];
  };
  // A loop that has just loaded all this may run late for a moment.
  await until("it is ready", async () => (await ask("/readyz"))[0] === 200);
  expect(await ask("/v1/me")).toMatchObject([401, { code: "unauthenticated" }]);
  expect(await ask("/login")).toMatchObject([503, { code: "identity-provider-unavailable" }]);
  const page = await fetch(service.url);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("account")]);
  await service[Symbol.asyncDispose]();
  await expect(fetch(`${service.url}/livez`)).rejects.toThrow();
});

const redis = sharedRedis();

test("with REDIS_URL sessions and limits are in Redis, and without Redis it is not ready", async () => {
  await using t = await servicesDatabase(["gateway-bff"]);
  const here = { ...env, DATABASE_URL: t.url };
  const ask = async (url: string) => {
    const answer = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer tds_${"x".repeat(43)}` } });
    return { status: answer.status, limit: answer.headers.get("ratelimit") };
  };
  await using service = await start({ ...here, REDIS_URL: redis.url }, { openBus });
  // On a busy machine a slow Redis counts as unavailable for that request.
  await expect.poll(() => ask(service.url)).toMatchObject({ status: 401, limit: expect.stringContaining("read") });
  const counted = await t.db.query(`select from gateway_bff.rate_limits`);
  expect(counted.rows).toEqual([]);
  await using without = await start({ ...here, REDIS_URL: "redis://127.0.0.1:1" }, { openBus });
  expect(await ask(without.url)).toMatchObject({ status: 503 });
  const isReady = async (url: string) => (await fetch(`${url}/readyz`)).status;
  await until("the one with a Redis is ready", async () => (await isReady(service.url)) === 200);
  expect(await isReady(without.url)).toBe(503);
});

test("operator routes are not on the public port", async () => {
  await using t = await servicesDatabase(["gateway-bff"]);
  const here = { ...env, DATABASE_URL: t.url };
  await using service = await start(here, { openBus });
  for (const path of [
    "/metrics",
    "/debug",
    "/debug/outbox/failed",
    "/healthz/details",
    "/admin",
    "/dlq",
    "/.env",
    "/.git/HEAD",
    "/__x",
  ])
    expect([path, (await fetch(service.url + path)).status]).toEqual([path, 404]);
  expect((await fetch(service.url, { method: "OPTIONS" })).status).toBe(405);
  expect((await fetch(`${service.opsUrl}/metrics`)).status).toBe(200);
});

test("TODOKE_API_DOCS=false removes the API reference and its documents", async () => {
  await using t = await servicesDatabase(["gateway-bff"]);
  const here = { ...env, DATABASE_URL: t.url };
  await using open = await start(here, { openBus });
  await using shut = await start({ ...here, TODOKE_API_DOCS: "false" }, { openBus });
  const statusOf = async (url: string) => (await fetch(url, { redirect: "manual" })).status;
  for (const path of ["/docs", "/docs/", "/openapi.json", "/openapi/account.json"]) {
    expect([path, await statusOf(open.url + path)]).not.toEqual([path, 404]);
    expect([path, await statusOf(shut.url + path)]).toEqual([path, 404]);
  }
  expect(await statusOf(`${shut.opsUrl}/openapi.json`)).toBe(404);
  expect(await (await fetch(open.url)).text()).toContain('href="/docs"');
  expect(await (await fetch(shut.url)).text()).not.toContain("/docs");
});

test.each([
  { TODOKE_API_DOCS: "no" },
  { TODOKE_ALLOWED_HOSTS: "https://play.example" },
  { GATEWAY_BFF_CONNECTIONS_MAX: "1" },
  { GATEWAY_BFF_LIMIT_IN_FLIGHT: "0" },
])("%o is an error that names the setting", (wrong) => {
  const errors = configErrors({ ...env, DATABASE_URL: "postgres://localhost", ...wrong });
  expect(errors).toEqual([expect.stringContaining(Object.keys(wrong)[0] ?? "")]);
});

test("all settings errors are reported together", () => {
  expect(configErrors({ ...env, DATABASE_URL: "postgres://localhost" })).toEqual([]);
  expect(configErrors({ GATEWAY_BFF_ROLES: "sleeper" }).length).toBeGreaterThanOrEqual(7);
});
