import { randomBytes } from "node:crypto";
import { newSigningKey, textOfSigningKey } from "@todoke/http";
import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

const secret = randomBytes(32).toString("base64url");
const good = {
  OIDC_ISSUER: "https://login.example.com/realms/todoke",
  OIDC_CLIENT_ID: "todoke",
  GATEWAY_BFF_ORIGIN: "https://play.example.com",
  GATEWAY_BFF_SECRET: secret,
  GATEWAY_BFF_TOKEN_KEY: textOfSigningKey(newSigningKey("k1")),
  ACCOUNT_URL: "http://10.0.0.7:8081",
};

function read(env: Record<string, string>) {
  const faults: string[] = [];
  return { ...readSettings({ ...good, ...env }, faults), faults };
}

test("what must be said is little; the rest is as usual", () => {
  const settings = read({});
  expect(settings).toMatchObject({
    faults: [],
    origin: "https://play.example.com",
    isLoopback: false,
    nativeRedirects: [],
    sessions: { idleMs: 30 * 60_000, absoluteMs: 12 * 3_600_000, perUserMax: 10 },
    upstreams: { timeoutMs: 2_000, urls: { points: undefined, matchmaking: undefined } },
    profileTimeoutMs: 800,
    waitMaxMs: 1_000,
  });
  expect(settings).not.toHaveProperty("redisUrl");
  expect(settings.sessions.secrets).toEqual([Buffer.from(secret, "base64url")]);
});

test("a secret can be replaced: the new one first, the old one behind it", () => {
  const next = randomBytes(32).toString("base64url");
  const { sessions, faults } = read({ GATEWAY_BFF_SECRET: `${next}, ${secret}` });
  expect([faults, sessions.secrets.map((each) => each.toString("base64url"))]).toEqual([[], [next, secret]]);
});

test("an empty environment is told all that it lacks at once, a sentence each", () => {
  const faults: string[] = [];
  readSettings({}, faults);
  const names = ["OIDC_ISSUER", "OIDC_CLIENT_ID", "GATEWAY_BFF_SECRET", "GATEWAY_BFF_TOKEN_KEY", "ACCOUNT_URL"];
  for (const name of names) expect(faults.filter((fault) => fault.startsWith(name))).toHaveLength(1);
  expect(faults).toHaveLength(names.length);
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
])("%s=%s is told by its name, and no secret is shown", (name, value) => {
  const { faults } = read({ [name]: value });
  expect(faults).toEqual([expect.stringContaining(name)]);
  expect(faults.join()).not.toContain(secret);
});

test("native clients may end at addresses and at schemes of their own", () => {
  const text = "com.example.game:, https://game.example/done";
  const { faults, nativeRedirects } = read({ GATEWAY_BFF_NATIVE_REDIRECTS: text });
  expect([faults, nativeRedirects]).toEqual([[], ["com.example.game:", "https://game.example/done"]]);
});

test("on loopback plain http will do, for trying out", () => {
  for (const origin of ["http://localhost:8080", "http://127.0.0.1:8080"]) {
    const settings = read({ GATEWAY_BFF_ORIGIN: origin, OIDC_ISSUER: "http://127.0.0.1:8089" });
    expect(settings).toMatchObject({ faults: [], origin, isLoopback: true });
  }
});
