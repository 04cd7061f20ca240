import { hash } from "node:crypto";
import type { HttpApp } from "@todoke/http";
import { memoryBus } from "@todoke/kernel/bus";
import { idempotencyConflict } from "@todoke/kernel/idempotency";
import { until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { start } from "./main.ts";
import {
  countAccepted,
  countCommands,
  logMismatches,
  measureWaiting,
  observeClockDrift,
  senderTelemetry,
} from "./telemetry.ts";
import { bodyOf } from "./testing.ts";

/** The service with its ops listener. */
async function createHarness(roles = "api,maintenance") {
  const t = await servicesDatabase(["orders"]);
  const env = {
    DATABASE_URL: t.url,
    ORDERS_PORT: "0",
    ORDERS_ROLES: roles,
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `desk=orders:write=${hash("sha256", "tdk_desk", "hex")}`,
  };
  const service = await start(env, { openBus: async () => memoryBus() });
  const samples = async (name: string) =>
    (await (await fetch(`${service.opsUrl}/metrics`)).text()).split("\n").filter((line) => line.startsWith(name));
  return {
    db: t.open({ schema: "orders" }),
    order: (key: string) =>
      fetch(`${service.url}/do/order`, {
        method: "POST",
        headers: { authorization: "Bearer tdk_desk", "idempotency-key": key, "content-type": "application/json" },
        body: JSON.stringify(bodyOf(key)),
      }),
    cancel: (key: string) =>
      fetch(`${service.url}/do/order/${key}/cancel`, { method: "POST", headers: { authorization: "Bearer tdk_desk" } }),
    startMaintenance: () => start({ ...env, ORDERS_ROLES: "maintenance" }, { openBus: async () => memoryBus() }),
    /** Lines of /metrics with this prefix. */
    samples,
    /** Samples as increments since the call: counters belong to the process and are shared by the tests. */
    async counting() {
      const before = new Map((await samples("o")).map(readSample));
      return async (name: string) =>
        (await samples(name))
          .map(readSample)
          .map(([series, value]) => [series, value - (before.get(series) ?? 0)] as const)
          .filter(([, counted]) => counted !== 0)
          .map(([series, counted]) => `${series} ${counted}`);
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

function readSample(line: string): readonly [series: string, value: number] {
  const index = line.lastIndexOf(" ");
  return [line.slice(0, index), Number(line.slice(index))];
}

function recordLog() {
  const lines: unknown[] = [];
  const write = (level: string) => (line: object, text: string) => lines.push({ level, text, ...line });
  return {
    lines,
    log: { info: write("info"), warn: write("warn"), error: write("error") } as unknown as HttpApp["log"],
  };
}

test("senders count by the names of the seed, and log every transition without the key", async () => {
  await using t = await createHarness();
  const counted = await t.counting();
  const { lines, log } = recordLog();
  const telemetry = senderTelemetry("paper", log);
  const order = { idempotencyKey: "my-key", attempts: 2 };
  countAccepted(3);
  telemetry.transitioned(order, { to: "succeeded" });
  telemetry.transitioned(order, { to: "failed", code: "BROKER_DOWN" });
  telemetry.transitioned(order, { to: "aborted", code: "BROKER_REJECTED" });
  telemetry.transitioned(order, { to: "unknown", code: "BROKER_TIMEOUT" });
  telemetry.dispatched(1_500);
  telemetry.brokerCalled("send", "taken", performance.now());
  expect(await counted("outbox_enqueued_total")).toEqual(["outbox_enqueued_total 3"]);
  expect(await counted("outbox_sent_total")).toEqual(['outbox_sent_total{adapter="paper"} 1']);
  expect(await counted("outbox_failed_total")).toEqual(['outbox_failed_total{adapter="paper",code="BROKER_DOWN"} 1']);
  expect(await counted("outbox_aborted_total")).toEqual([
    'outbox_aborted_total{adapter="paper",code="BROKER_REJECTED"} 1',
  ]);
  expect(await counted("outbox_age_seconds_sum")).toEqual([
    'outbox_age_seconds_sum{adapter="paper",measured="dispatched"} 1.5',
  ]);
  expect(await counted("orders_broker_duration_seconds_count")).toEqual([
    'orders_broker_duration_seconds_count{adapter="paper",call="send",result="taken"} 1',
  ]);
  const idempotency_key_hash = hash("sha256", "my-key", "hex");
  const line = { text: "order", idempotency_key_hash, attempts: 2, adapter: "paper" };
  expect(lines).toEqual([
    { ...line, level: "info", status: "succeeded", last_error_code: undefined },
    { ...line, level: "warn", status: "failed", last_error_code: "BROKER_DOWN" },
    { ...line, level: "warn", status: "aborted", last_error_code: "BROKER_REJECTED" },
    { ...line, level: "warn", status: "unknown", last_error_code: "BROKER_TIMEOUT" },
  ]);
});

test("an order cancelled before it was sent is counted as aborted once, however often it is cancelled", async () => {
  await using t = await createHarness();
  const counted = await t.counting();
  expect((await t.order("k1")).status).toBe(201);
  for (const _ of [1, 2]) expect((await t.cancel("k1")).status).toBe(200);
  expect(await counted("outbox_aborted_total")).toEqual(['outbox_aborted_total{adapter="paper",code="CANCELLED"} 1']);
});

test("the age of orders that no worker sends is measured while they wait, with a bound on how many", async () => {
  await using t = await createHarness("api");
  for (let n = 0; n < 3; n++) expect((await t.order(`k${n}`)).status).toBe(201);
  await t.db.query(`update outbox_orders set created_at = now() - interval '20 seconds'`);
  await t.db.query(`update outbox_orders set status = 'sending', lease_until = now() where idempotency_key = 'k2'`);
  await t.db.query(`update outbox_orders set status = 'failed', lease_until = null, last_error_code = 'BROKER_DOWN'
                     where idempotency_key = 'k2'`);
  const waiting = 'adapter="paper",measured="waiting"';
  const counted = await t.counting();
  await measureWaiting(t.db);
  expect(await counted(`outbox_age_seconds_count{${waiting}`)).toEqual([`outbox_age_seconds_count{${waiting}} 3`]);
  // All are in the bucket of 10 to 30 s, so that a 95th percentile is above the 10 s of the alert.
  expect(await counted(`outbox_age_seconds_bucket{${waiting},le="10"`)).toEqual([]);
  expect(await counted(`outbox_age_seconds_bucket{${waiting},le="30"`)).toEqual([
    `outbox_age_seconds_bucket{${waiting},le="30"} 3`,
  ]);
  await t.db.query(
    `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter,
                                instrument, side, qty, changed_by, expires_at)
     select 'c', 'w' || i, 'w' || i, 'tdk-w' || i, '{}', 'd', 'paper', 'X', 'BUY', 1, 'c', now() from generate_series(1, 500) i`,
  );
  const bounded = await t.counting();
  await measureWaiting(t.db);
  expect(await bounded(`outbox_age_seconds_count{${waiting}`)).toEqual([`outbox_age_seconds_count{${waiting}} 101`]);
});

test("a service measures waiting orders from its start on", async () => {
  await using t = await createHarness("api");
  expect((await t.order("k1")).status).toBe(201);
  const counted = await t.counting();
  await using service = await t.startMaintenance();
  await until("a waiting order is measured", async () => {
    return (await counted('outbox_age_seconds_count{adapter="paper",measured="waiting"')).length > 0;
  });
  expect(service).toBeDefined();
});

test("requests are counted by result, and conflicts also on their own", async () => {
  await using t = await createHarness();
  const counted = await t.counting();
  const response = { status: 201, contentType: "application/json", body: Buffer.from("{}"), replayed: false };
  // biome-ignore lint/suspicious/noExplicitAny: only its instrument is used.
  const request = { caller: "desk", body: bodyOf("k"), order: { instrument: "X" } as any };
  await countCommands(async () => response)(request);
  await countCommands(async () => ({ ...response, replayed: true }))(request);
  const refused = countCommands(() => Promise.reject(idempotencyConflict("other")))(request);
  await expect(refused).rejects.toMatchObject({ code: "idempotency-conflict" });
  expect((await counted("orders_accept_total")).sort()).toEqual(
    ["applied", "conflict", "replayed"].map((result) => `orders_accept_total{result="${result}"} 1`),
  );
  expect(await counted("orders_idempotency_conflict_total")).toEqual(["orders_idempotency_conflict_total 1"]);
});

test("backlog, unresolved orders, clock drift and mismatches are gauges", async () => {
  await using t = await createHarness();
  for (const key of ["k1", "k2"]) expect((await t.order(key)).status).toBe(201);
  await t.db.query(`update outbox_orders set status = 'sending', lease_until = now() where idempotency_key = 'k2'`);
  await t.db.query(`update outbox_orders set status = 'unknown', lease_until = null, last_error_code = 'BROKER_TIMEOUT',
                           in_doubt_since = now() - interval '1 hour' where idempotency_key = 'k2'`);
  await t.db.query(`insert into reconciliations (adapter, mismatches, last_ok_at)
                    values ('paper', 2, now() - interval '5 hours'), ('http', 7, now() - interval '2 hours')`);
  await using drift = observeClockDrift("http");
  drift.record(-250);
  expect(await t.samples("orders_backlog_current")).toContain('orders_backlog_current{status="pending"} 1');
  expect(await t.samples("orders_unresolved_current")).toEqual(["orders_unresolved_current 1"]);
  const [age = ""] = await t.samples("orders_unresolved_age_seconds");
  expect(Number(age.split(" ")[1])).toBeGreaterThanOrEqual(3_600);
  // Only the configured broker counts.
  expect(await t.samples("orders_reconciliation_mismatch_current")).toEqual([
    "orders_reconciliation_mismatch_current 2",
  ]);
  const [reconciledAgo = ""] = await t.samples("orders_reconciliation_age_seconds");
  expect(Math.floor(Number(reconciledAgo.split(" ")[1]) / 3_600)).toBe(5);
  expect(await t.samples("orders_broker_clock_drift_seconds")).toEqual([
    'orders_broker_clock_drift_seconds{adapter="http"} -0.25',
  ]);
  const { lines, log } = recordLog();
  logMismatches("paper", log)([]);
  const mismatch = { clientOrderId: "tdk-1", kind: "missing", detail: "the broker does not list it" } as const;
  logMismatches("paper", log)(Array(30).fill(mismatch));
  expect(lines).toMatchObject([{ level: "error", mismatches: 30, first: Array(10).fill(mismatch) }]);
});
