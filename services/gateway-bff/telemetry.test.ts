import { hash, randomBytes } from "node:crypto";
import { formatSigningKey, newSigningKey } from "@todoke/http";
import { MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { prometheusName } from "@todoke/service";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { start } from "./main.ts";
import { metricCatalogue } from "./telemetry.ts";
import { alice, userView } from "./testing.ts";
import { answering, fakeService, hangingUp, refusing } from "./upstreams/testing.ts";

async function setup() {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await servicesDatabase(["gateway-bff"]));
  const account = parts.use(await fakeService(answering(userView(alice))));
  const entitlement = parts.use(await fakeService(hangingUp));
  const env = {
    DATABASE_URL: t.url,
    LOG_LEVEL: "silent",
    GATEWAY_BFF_PORT: "0",
    GATEWAY_BFF_LIMIT_LOGIN: "2/3600s",
    // A busy machine is not what is counted here.
    GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
    GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
    GATEWAY_BFF_PROFILE_TIMEOUT_MS: "60000",
    GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
    GATEWAY_BFF_TOKEN_KEY: formatSigningKey(newSigningKey("k1")),
    OIDC_ISSUER: "http://127.0.0.1:1",
    OIDC_CLIENT_ID: "todoke",
    ACCOUNT_URL: account.url.origin,
    ENTITLEMENT_URL: entitlement.url.origin,
  };
  const service = parts.use(await start(env, { openBus: async () => memoryBus(new MemoryBroker()) }));
  const token = `tds_${randomBytes(32).toString("base64url")}`;
  await t.db.query(
    `insert into gateway_bff.known_users (user_id, status, roles, account_version) values ($1, 'ACTIVE', '{USER}', 1)`,
    [alice],
  );
  await t.db.query(
    `insert into gateway_bff.sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_tokens,
                                       created_at, last_seen_at, ends_at)
     values (gen_random_uuid(), $1, $2, 'native', 'i', 's', '', now(), now(), now() + interval '1 hour')`,
    [hash("sha256", token, "buffer"), alice],
  );
  return {
    account,
    get: (path: string, headers: Record<string, string> = {}) =>
      fetch(service.url + path, { redirect: "manual", headers: { authorization: `Bearer ${token}`, ...headers } }),
    metrics: async () => (await fetch(`${service.opsUrl}/metrics`)).text(),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

test("logins, limits, calls and profile parts are in /metrics, and the trace continues", async () => {
  await using t = await setup();
  const traceId = randomBytes(16).toString("hex");
  await t.get("/v1/me", { traceparent: `00-${traceId}-${"1".repeat(16)}-01` });
  await t.get(`/v1/users/${alice}/profile`);
  t.account.setBehaviour(refusing(403, "account-inactive"));
  await t.get("/v1/me");
  for (let n = 0; n < 3; n++) await t.get("/login");
  expect(t.account.received[0]?.headers.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-0[01]$`));

  const text = await t.metrics();
  expect(text.split("\n")).toEqual(
    expect.arrayContaining([
      'gateway_upstream_total{upstream="account",result="ok"} 2',
      'gateway_upstream_total{upstream="account",result="refused"} 1',
      // The second one is the second try.
      'gateway_upstream_total{upstream="entitlement",result="bad_gateway"} 2',
      'gateway_upstream_duration_seconds_count{upstream="account",result="ok"} 2',
      'gateway_upstream_duration_seconds_count{upstream="entitlement",result="bad_gateway"} 1',
      'gateway_profile_parts_total{part="account",status="ok"} 1',
      'gateway_profile_parts_total{part="entitlements",status="failed"} 1',
      'gateway_profile_parts_total{part="points",status="absent"} 1',
    ]),
  );
  for (const [name, metric] of Object.entries(metricCatalogue)) expect(text).toContain(prometheusName(name, metric));
});
