/**
 * All seven services, with events on NATS and reservations of points on RabbitMQ. Reservations are granted once, through a
 * crash of RabbitMQ and of the worker; while RabbitMQ is unavailable everything else continues.
 */
import { hash } from "node:crypto";
import { type Engine, startEngine } from "@todoke/engines";
import type { Db } from "@todoke/kernel/db";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { type LocalSetup, startLocalSetup } from "./local-setup.ts";
import { createPointsClient } from "./points-client.ts";
import { recordViolations } from "./points-invariants.ts";
import { fillFullUser, openReservationLoad } from "./reservation-load.ts";
import { serve } from "./service-process.ts";

const longWait = { withinMs: 120_000 };
const apiKey = "tdk_flow";
const scopes = "points:write+entitlements:write+orders:write+read";

async function setup(rabbitmq: Engine) {
  await using parts = new AsyncDisposableStack();
  const nats = parts.use(await startEngine("nats"));
  const t = parts.use(await testDatabase({ sets: [], schema: "points" }));
  const env = {
    DATABASE_URL: t.url,
    EVENT_BUS_URL: nats.url,
    POINTS_RESERVATION_BUS_URL: rabbitmq.url,
    TODOKE_API_KEYS: `flow=${scopes}=${hash("sha256", apiKey, "hex")}`,
    LOG_LEVEL: "silent",
    POINTS_SCHEDULER_SECONDS: "1",
    POINTS_LEASE_MS: "1000",
  };
  const all = parts.use(
    await startLocalSetup({
      ...env,
      POINTS_ROLES: "api,maintenance,relay,scheduler",
      OIDC_ISSUER: "http://127.0.0.1:1", // No player logs in here.
      OIDC_CLIENT_ID: "todoke",
    }),
  );
  const workers = parts.use(new AsyncDisposableStack());
  const startWorker = async () => workers.use(await serve("points", { ...env, POINTS_ROLES: "worker" }));
  const moved = parts.move();
  return { db: t.db, all, startWorker, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

/** Sends a command and returns the status of the response. */
async function send(url: string, method: "POST" | "PUT", key: string, body: object): Promise<number> {
  const headers = {
    authorization: `Bearer ${apiKey}`,
    "content-type": "application/json",
    "idempotency-key": key,
  };
  return (await fetch(url, { method, headers, body: JSON.stringify(body) })).status;
}

/** A grant, an order and an addition of points, each for a user of its own. */
async function useOtherServices(all: LocalSetup, name: string): Promise<readonly number[]> {
  const [entitlement, orders, points] = (["entitlement", "orders", "points"] as const).map(all.serviceUrl);
  const grant = { user_id: `grant_${name}`, stock_keeping_unit: "item1", reason: "purchase", purchase_id: name };
  const order = {
    idempotency_key: name,
    order_id: name,
    user_id: `order_${name}`,
    instrument: "BTC-USD",
    side: "BUY",
    qty: 0.5,
    price: 60_000,
    requested_at: new Date().toISOString(),
  };
  return Promise.all([
    send(`${entitlement}/v1/entitlements/grants`, "POST", name, grant),
    send(`${orders}/do/order`, "POST", name, order),
    send(`${points}/point/add`, "PUT", name, { user_id: `points_${name}`, point_amount: 5 }),
  ]);
}

/** The users who are notified, in the order of their names. */
async function notifiedUsers(db: Db, name: string): Promise<string[]> {
  const { rows } = await db.query(
    `select distinct user_id from notification.notifications where status = 'SENT' and user_id like '%\\_' || $1
      order by user_id`,
    [name],
  );
  return rows.map((row) => row.user_id);
}

const unnotifiedSql = `
  select from outbox_events e
   where e.subject = 'points.events'
     and not exists (select from notification.notifications n where n.event_id = e.event_id and n.status = 'SENT')
  limit 1`;

test("reservations are granted once through crashes of RabbitMQ and the worker, and nothing else waits for RabbitMQ", {
  timeout: 600_000,
}, async () => {
  await using rabbitmq = await startEngine("rabbitmq");
  await using t = await setup(rabbitmq);
  const { db, all } = t;
  let worker = await t.startWorker();
  const client = createPointsClient(() => [all.serviceUrl("points")]);
  const load = openReservationLoad(client);
  const count = async (where: string) =>
    Number((await db.query(`select count(*) from point_reservations where ${where}`)).rows[0].count);
  await fillFullUser(client);
  load.start();
  await using _ = { [Symbol.asyncDispose]: () => load.stop().catch(() => {}) };
  await until("reservations are granted", async () => (await count(`status = 'DONE'`)) >= 20, longWait);

  await rabbitmq.kill();
  const { rows: died } = await db.query(`select clock_timestamp()::text as at`);
  const sinceOutage = `created_at > '${died[0].at}'`;
  await until("due ones wait", async () => (await count(`${sinceOutage} and status = 'PROCESSING'`)) >= 60, longWait);
  expect(await useOtherServices(all, "outage")).toEqual([201, 201, 200]);
  const users = ["grant_outage", "order_outage", "points_outage"];
  await until("their users are notified", async () => (await notifiedUsers(db, "outage")).length === 3, longWait);
  expect(await notifiedUsers(db, "outage")).toEqual(users);
  for (const name of ["points", "notification"] as const)
    await until(`${name} is ready`, async () => (await fetch(`${all.serviceUrl(name)}/readyz`)).ok);
  // The reservations do go through RabbitMQ: while it is down, none is granted.
  expect(await count(`${sinceOutage} and status not in ('PENDING', 'PROCESSING')`)).toBe(0);

  await rabbitmq.start();
  await until("they are granted", async () => (await count(`${sinceOutage} and status = 'DONE'`)) >= 60, longWait);
  for (let n = 0; n < 2; n++) {
    const accepted = load.accepted.length;
    await until("more are accepted", () => load.accepted.length >= accepted + 30, longWait);
    worker.signal("SIGKILL");
    await worker.exited;
    worker = await t.startWorker();
  }

  await load.stop();
  await until("all have ended", async () => (await count(`status in ('PENDING', 'PROCESSING')`)) === 0, longWait);
  await until("all users are notified", async () => (await db.query(unnotifiedSql)).rowCount === 0, longWait);
  expect(await recordViolations(db, load.accepted)).toEqual([]);
  const { rows: failed } = await db.query(`select event_id from outbox_events where status = 'FAILED'`);
  expect(failed).toEqual([]);
});
