import { randomBytes } from "node:crypto";
import { formatSigningKey, newSigningKey } from "@todoke/http";
import { expect, test } from "vitest";
import { readLimits, readSettings } from "./config.ts";

const secret = randomBytes(32).toString("base64url");
const good = {
  OIDC_ISSUER: "https://login.example.com/realms/todoke",
  OIDC_CLIENT_ID: "todoke",
  GATEWAY_BFF_ORIGIN: "https://play.example.com",
  GATEWAY_BFF_SECRET: secret,
  GATEWAY_BFF_TOKEN_KEY: formatSigningKey(newSigningKey("k1")),
  ACCOUNT_URL: "http://10.0.0.7:8081",
};

function read(env: Record<string, string>) {
  const errors: string[] = [];
  return { ...readSettings({ ...good, ...env }, errors), errors };
}

test("defaults: idle 30 min, age 12 h, 10 sessions per user, timeouts 2 s and 0.8 s", () => {
  const settings = read({});
  expect(settings).toMatchObject({
    errors: [],
    origin: "https://play.example.com",
    isLoopback: false,
    nativeRedirects: [],
    sessions: { idleMs: 30 * 60_000, absoluteMs: 12 * 3_600_000, perUserMax: 10 },
    upstreams: { timeoutMs: 2_000, urls: { points: undefined, matchmaking: undefined } },
    profileTimeoutMs: 800,
    limiterTimeoutMs: 1_000,
  });
  expect(settings).not.toHaveProperty("redisUrl");
  expect(settings.sessions.secrets).toEqual([Buffer.from(secret, "base64url")]);
});

test("GATEWAY_BFF_SECRET takes several secrets, the one that encrypts first", () => {
  const next = randomBytes(32).toString("base64url");
  const { sessions, errors } = read({ GATEWAY_BFF_SECRET: `${next}, ${secret}` });
  expect([errors, sessions.secrets.map((each) => each.toString("base64url"))]).toEqual([[], [next, secret]]);
});

test("an empty environment reports every missing setting at once", () => {
  const errors: string[] = [];
  readSettings({}, errors);
  const names = ["OIDC_ISSUER", "OIDC_CLIENT_ID", "GATEWAY_BFF_SECRET", "GATEWAY_BFF_TOKEN_KEY", "ACCOUNT_URL"];
  for (const name of names) expect(errors.filter((error) => error.startsWith(name))).toHaveLength(1);
  expect(errors).toHaveLength(names.length);
});

test.each([
  ["GATEWAY_BFF_ORIGIN", "http://play.example.com"],
  ["GATEWAY_BFF_ORIGIN", "https://play.example.com/game"],
  ["GATEWAY_BFF_ORIGIN", "play"],
  ["OIDC_ISSUER", "http://login.example.com"],
  ["OIDC_ISSUER", "https://login.example.com?realm=1"],
  ["GATEWAY_BFF_SECRET", "short"],
  ["GATEWAY_BFF_SECRET", `${secret},short`],
  ["GATEWAY_BFF_TOKEN_KEY", secret],
  ["GATEWAY_BFF_NATIVE_REDIRECTS", "com.example.game"],
  ["GATEWAY_BFF_NATIVE_REDIRECTS", "com.example.game:,https:"],
  ["REDIS_URL", "https://redis"],
  ["ACCOUNT_URL", "10.0.0.7:8081"],
  ["POINTS_URL", "http://points/v1"],
  ["GATEWAY_BFF_SESSION_HOURS", "0"],
  ["GATEWAY_BFF_UPSTREAM_TIMEOUT_MS", "soon"],
  ["GATEWAY_BFF_LIMIT_READ", "many"],
  ["GATEWAY_BFF_LIMIT_WAIT_MS", "0"],
])("%s=%s is an error that names the setting and shows no secret", (name, value) => {
  const { errors } = read({ [name]: value });
  expect(errors).toEqual([expect.stringContaining(name)]);
  expect(errors.join()).not.toContain(secret);
});

test("GATEWAY_BFF_NATIVE_REDIRECTS takes addresses and private schemes", () => {
  const text = "com.example.game:, https://game.example/done";
  const { errors, nativeRedirects } = read({ GATEWAY_BFF_NATIVE_REDIRECTS: text });
  expect([errors, nativeRedirects]).toEqual([[], ["com.example.game:", "https://game.example/done"]]);
});

test("plain http is accepted on loopback", () => {
  for (const origin of ["http://localhost:8080", "http://127.0.0.1:8080", "http://play.localhost:8080"]) {
    const settings = read({ GATEWAY_BFF_ORIGIN: origin, OIDC_ISSUER: "http://127.0.0.1:8089" });
    expect(settings).toMatchObject({ errors: [], origin, isLoopback: true });
  }
});

const limitsIn = (env: Record<string, string>) => {
  const errors: string[] = [];
  return { limits: readLimits(env, errors), errors };
};

test("default limits are the ones that the guide lists", () => {
  const { limits, errors } = limitsIn({});
  expect(errors).toEqual([]);
  expect(limits).toEqual({
    classes: {
      login: { name: "login", quota: 20, windowMs: 60_000 },
      logout: { name: "logout", quota: 60_000, windowMs: 60_000 },
      read: { name: "read", quota: 600, windowMs: 60_000 },
      write: { name: "write", quota: 120, windowMs: 60_000 },
      bulk: { name: "bulk", quota: 30, windowMs: 60_000 },
    },
    address: { name: "address", quota: 6_000, windowMs: 60_000 },
    trustedProxies: 0,
    inFlightMax: 500,
  });
});

test("limits, trusted proxies and requests in flight can be set", () => {
  const { limits, errors } = limitsIn({
    GATEWAY_BFF_LIMIT_LOGIN: "3/3600s",
    GATEWAY_BFF_TRUSTED_PROXIES: "2",
    GATEWAY_BFF_LIMIT_IN_FLIGHT: "7",
  });
  expect(errors).toEqual([]);
  expect(limits.classes.login).toEqual({ name: "login", quota: 3, windowMs: 3_600_000 });
  expect([limits.trustedProxies, limits.inFlightMax]).toEqual([2, 7]);
});

test("unreadable limits are reported together, each with the expected form", () => {
  const wrong = ["600", "600/60", "0/60s", "600/0s", "1000001/60s", "600/3601s", "-1/60s", "1e3/60s", "600/60s "];
  for (const text of wrong) {
    const { errors } = limitsIn({ GATEWAY_BFF_LIMIT_READ: text, GATEWAY_BFF_TRUSTED_PROXIES: "many" });
    expect(errors, text).toEqual([
      `GATEWAY_BFF_LIMIT_READ is ${JSON.stringify(text)} and should look like 600/60s: 1 to 1000000 calls in 1 to 3600 seconds`,
      'GATEWAY_BFF_TRUSTED_PROXIES is "many" and should be a whole number from 0 to 16',
    ]);
  }
});
