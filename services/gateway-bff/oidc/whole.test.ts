/** Logins in the complete gateway, as `todoke serve` runs it: with metrics, limits, languages and account. */
import { randomBytes } from "node:crypto";
import { formatSigningKey, newSigningKey } from "@todoke/http";
import { memoryBus } from "@todoke/kernel/bus";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, onTestFinished, test } from "vitest";
import { start } from "../main.ts";
import { alice, userView } from "../testing.ts";
import { answering, fakeService } from "../upstreams/testing.ts";
import { clientId, clientSecret, startLyingProvider } from "./testing/lying-provider.ts";

async function setup(more: Record<string, string> = {}) {
  const parts = new AsyncDisposableStack();
  onTestFinished(() => parts.disposeAsync());
  const t = parts.use(await servicesDatabase(["gateway-bff"]));
  const provider = parts.use(await startLyingProvider());
  const account = parts.use(await fakeService(answering(userView(alice))));
  const env = {
    DATABASE_URL: t.url,
    GATEWAY_BFF_PORT: "0",
    GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
    GATEWAY_BFF_TOKEN_KEY: formatSigningKey(newSigningKey("k1")),
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: clientId,
    OIDC_CLIENT_SECRET: clientSecret,
    ACCOUNT_URL: account.url.origin,
    // A busy machine is not what these tests are about.
    GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
    GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
    LOG_LEVEL: "silent",
    ...more,
  };
  // The provider is not called before the first login.
  await provider.down();
  const gateway = parts.use(await start(env, { openBus: async () => memoryBus() }));
  await provider.up();
  const headers: Record<string, string> = { accept: "text/html", "accept-language": "ja" };
  const get = (path: string) => fetch(new URL(path, gateway.url), { redirect: "manual", headers });

  /** One browser, which sends the binding cookie. */
  async function logIn(): Promise<Response> {
    const begun = await get("/login");
    headers.cookie = begun.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const back = await fetch(begun.headers.get("location") ?? "", { redirect: "manual" });
    const { pathname, search } = new URL(back.headers.get("location") ?? "");
    return get(pathname + search);
  }

  const metrics = async () => (await (await fetch(`${gateway.opsUrl}/metrics`)).text()).split("\n");
  return { provider, account, get, logIn, metrics };
}

test("logins are counted by result, and account resolves the identity", async () => {
  const { provider, account, get, logIn, metrics } = await setup({ GATEWAY_BFF_LIMIT_LOGIN: "600/60s" });
  const landed = await logIn();
  expect(landed.status).toBe(200);
  expect(landed.headers.getSetCookie()).toEqual([expect.stringMatching(/^todoke=tds_/)]);
  expect(account.received).toMatchObject([{ method: "POST", path: "/identities:resolve" }]);
  expect(JSON.parse(account.received[0]?.body ?? "")).toEqual({ provider: provider.issuer, subject: "alice" });

  provider.lies = { claims: { aud: "another" } };
  expect((await logIn()).status).toBe(502);
  await get("/login/callback?state=of-nobody");
  provider.lies = {};
  account.setBehaviour(answering(userView(alice, { status: "SUSPENDED", version: 2 })));
  expect((await logIn()).status).toBe(200);
  account.setBehaviour((response) => response.destroy());
  expect((await logIn()).status).toBe(502);

  const counted = (await metrics()).filter((line) => line.startsWith("gateway_login_total{"));
  const resultOf = (line: string) => /result="([^"]+)".* (\d+)/.exec(line)?.slice(1).join(" ");
  expect(counted.map(resultOf).sort()).toEqual([
    "ACCOUNT_BAD_GATEWAY 1",
    "identity-not-proven 1",
    "login-not-under-way 1",
    "ok 1",
    "suspended 1",
  ]);
});

test("a rate-limited login is shown as a page in the user's language", async () => {
  const { get } = await setup({ GATEWAY_BFF_LIMIT_LOGIN: "6/60s" });
  const wrong = await get("/login/callback?state=of-nobody");
  expect(wrong.status).toBe(400);
  expect(wrong.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(await wrong.text()).toContain("<h1>このログインは無効です</h1>");
  const many = await Promise.all(Array.from({ length: 10 }, () => get("/login")));
  const refused = many.find((answer) => answer.status === 429);
  expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await refused?.text()).toContain("<h1>リクエストが多すぎます</h1>");
});
