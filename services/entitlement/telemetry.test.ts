import { hash } from "node:crypto";
import { type EventBus, memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { start } from "./main.ts";
import { body } from "./testing.ts";

async function setup(bus: EventBus) {
  const t = await servicesDatabase(["entitlement"]);
  const env = {
    DATABASE_URL: t.url,
    ENTITLEMENT_PORT: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `shop=entitlements:write=${hash("sha256", "tdk_shop", "hex")}`,
  };
  const db = t.open({ schema: "entitlement" });
  const service = await start(env, { openBus: async () => bus });
  return {
    db,
    post: (path: string, key: string, payload: object = body) =>
      fetch(`${service.url}/v1/entitlements/${path}`, {
        method: "POST",
        headers: { authorization: "Bearer tdk_shop", "idempotency-key": key, "content-type": "application/json" },
        body: JSON.stringify(payload),
      }),
    metrics: async () => (await fetch(`${service.opsUrl}/metrics`)).text(),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("/metrics counts commands, requests and published events", async () => {
  await using t = await setup(memoryBus());
  await t.post("grants", "key-1");
  await t.post("grants", "key-1");
  await t.post("grants", "key-1", { ...body, purchase_id: "another" });
  await t.post("revokes", "key-2");
  await until("both events are published", async () => {
    const { rowCount } = await t.db.query(`select from outbox_events where status = 'PUBLISHED'`);
    return rowCount === 2;
  });

  const lines = async () => (await t.metrics()).split("\n");
  // The process counts shortly after the commit.
  await expect
    .poll(lines)
    .toEqual(
      expect.arrayContaining([
        'entitlement_command_total{action="grant",result="applied"} 1',
        'entitlement_command_total{action="grant",result="replayed"} 1',
        'entitlement_command_total{action="grant",result="conflict"} 1',
        'entitlement_command_total{action="revoke",result="applied"} 1',
        "entitlement_outbox_publish_delay_seconds_count 2",
        'todoke_worker_jobs_total{worker="entitlement relay",outcome="done"} 2',
        'entitlement_outbox_backlog{status="pending"} 0',
        "entitlement_outbox_backlog_age_seconds 0",
        "entitlement_outbox_failed_current 0",
        'db_client_connection_pending_requests{db_client_connection_pool_name="entitlement"} 0',
      ]),
    );
  const grants = (await lines()).filter(
    (line) => line.includes("_count{") && line.includes('"/v1/entitlements/grants"'),
  );
  expect(grants.map((line) => line.slice(line.indexOf("http_response")))).toEqual([
    'http_response_status_code="201"} 2',
    'http_response_status_code="409"} 1',
  ]);
});
