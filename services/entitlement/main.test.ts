import { hash } from "node:crypto";
import { memoryBus } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { configErrors, migrate, start } from "./main.ts";
import { body } from "./testing.ts";

const envOf = (databaseUrl: string) => ({
  DATABASE_URL: databaseUrl,
  ENTITLEMENT_PORT: "0",
  LOG_LEVEL: "silent",
  TODOKE_API_KEYS: `shop=entitlements:write+read=${hash("sha256", "tdk_shop", "hex")}`,
});

/** The whole service, as `todoke` starts it. */
async function setup(more: Record<string, string> = {}) {
  const t = await servicesDatabase(["entitlement"]);
  const env = { ...envOf(t.url), ...more };
  const service = await start(env, { openBus: async () => memoryBus() });
  const db = t.open({ schema: "entitlement" });
  const call = async (base: string, path: string, payload?: object) => {
    const response = await fetch(`${base}${path}`, {
      method: payload ? "POST" : "GET",
      headers: { authorization: "Bearer tdk_shop", "idempotency-key": "key-1", "content-type": "application/json" },
      ...(payload && { body: JSON.stringify(payload) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: any JSON.
    return { status: response.status, body: (await response.json()) as any };
  };
  return {
    db,
    /** Another process of the same service. */
    startAnother: (roles: string) => start({ ...env, ENTITLEMENT_ROLES: roles }, { openBus: async () => memoryBus() }),
    call: (path: string, payload?: object) => call(service.url, path, payload),
    ops: (path: string, payload?: object) => call(service.opsUrl, path, payload),
    published: (type: string) =>
      until(`${type} is published`, async () => {
        const { rowCount } = await db.query(
          `select from outbox_events where event_type = $1 and status = 'PUBLISHED'`,
          [type],
        );
        return (rowCount ?? 0) > 0;
      }),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("a FAILED event is redriven on the ops listener, recorded and published", async () => {
  await using t = await setup();
  await t.call("/v1/entitlements/grants", body);
  await t.published("EntitlementGranted");
  const { rows } = await t.db.query(
    `update outbox_events set status = 'FAILED', published_at = null, attempt_count = 10, last_error = 'timeout' returning event_id`,
  );
  const [{ event_id }] = rows;
  expect((await t.ops("/debug/outbox/failed")).body.events).toMatchObject([{ event_id, last_error: "timeout" }]);
  expect((await t.call("/debug/outbox/failed")).status).toBe(404);
  const request = { redriven_by: "aki", reason: "the broker is up again" };
  expect((await t.ops(`/debug/outbox/failed/${event_id}/redrive`, request)).status).toBe(200);
  await t.published("EntitlementGranted");
  const redrives = await t.db.query(
    `select of_key as event_id, redriven_by, reason, attempt_count, last_error from redrives`,
  );
  expect(redrives.rows).toEqual([{ event_id, ...request, attempt_count: 10, last_error: "timeout" }]);
});

test("an expired entitlement is published without a request", async () => {
  await using t = await setup();
  await t.call("/v1/entitlements/grants", { ...body, expires_at: "2999-01-01T00:00:00Z" });
  await t.db.query(`update entitlements set expires_at = now()`);
  await t.published("EntitlementExpired");
  expect((await t.call("/v1/users/u_123/entitlements/item1")).body).toMatchObject({ status: "EXPIRED", version: 2 });
});

test("a process runs its roles only, and the relay may run in another process", async () => {
  await using t = await setup({ ENTITLEMENT_ROLES: "api, maintenance" });
  expect((await t.call("/v1/entitlements/grants", body)).status).toBe(201);
  await using relay = await t.startAnother("relay");
  await t.published("EntitlementGranted");
  const { rows } = await t.db.query(`select attempt_count from outbox_events`);
  expect(rows).toMatchObject([{ attempt_count: 1 }]);
  expect((await fetch(`${relay.url}/v1/users/u_123/entitlements`)).status).toBe(404);
  // Not ready while the event loop lags after a slow start.
  await expect.poll(async () => (await fetch(`${relay.url}/readyz`)).status).toBe(200);
});

test("an unknown role and a lease out of bounds are settings errors", () => {
  const env = envOf("postgres://localhost/x");
  expect(configErrors({ ...env, ENTITLEMENT_ROLES: "relay,api", ENTITLEMENT_LEASE_MS: "5000" })).toEqual([]);
  expect(configErrors({ ...env, ENTITLEMENT_ROLES: "relay,sender", ENTITLEMENT_LEASE_MS: "10" })).toEqual([
    "ENTITLEMENT_ROLES should name one or more of api, maintenance, relay, with commas between them",
    'ENTITLEMENT_LEASE_MS is "10" and should be a whole number from 1000 to 86400000',
  ]);
});

test("migrate needs no setting but the database URL", async () => {
  await using t = await testDatabase();
  expect((await migrate({ DATABASE_URL: t.url }, { dryRun: false })).length).toBeGreaterThan(0);
  await expect(migrate({}, { dryRun: false })).rejects.toThrow("DATABASE_URL is not set");
});

test("the audit is kept for ENTITLEMENT_AUDIT_KEEP_MONTHS", async () => {
  await using t = await setup({ ENTITLEMENT_ROLES: "api", ENTITLEMENT_AUDIT_KEEP_MONTHS: "3" });
  const { rows } = await t.db.query<{ name: string; first: string; end: string }>(
    `select 'entitlement_audit_' || to_char(m, 'YYYY_MM') as name, m || '+00' as first, m + interval '1 month' || '+00' as end
       from (select date_trunc('month', now() at time zone 'UTC') - interval '5 months') as months(m)`,
  );
  const [old] = rows;
  await t.db.query(
    `create table ${old?.name} partition of entitlement_audit for values from ('${old?.first}') to ('${old?.end}')`,
  );
  await using _ = await t.startAnother("maintenance");
  const isKept = async () => (await t.db.query(`select to_regclass($1) is not null as kept`, [old?.name])).rows[0].kept;
  await expect.poll(isKept).toBe(false);
});

test("ENTITLEMENT_AUDIT_KEEP_MONTHS must be a whole number of months", () => {
  const env = envOf("postgres://localhost/x");
  expect(configErrors({ ...env, ENTITLEMENT_AUDIT_KEEP_MONTHS: "36" })).toEqual([]);
  for (const wrong of ["0", "1.5", "two", "-1"]) {
    expect(configErrors({ ...env, ENTITLEMENT_AUDIT_KEEP_MONTHS: wrong })).toEqual([
      `ENTITLEMENT_AUDIT_KEEP_MONTHS is "${wrong}" and should be a whole number from 1 to 1200`,
    ]);
  }
});
