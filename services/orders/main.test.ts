import { hash } from "node:crypto";
import { memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { configErrors, start } from "./main.ts";
import { bodyOf } from "./testing.ts";

const envOf = (databaseUrl: string) => ({
  DATABASE_URL: databaseUrl,
  ORDERS_PORT: "0",
  LOG_LEVEL: "silent",
  TODOKE_API_KEYS: `desk=orders:write+read=${hash("sha256", "tdk_desk", "hex")}`,
});

/** The service as `todoke` starts it, in several instances. */
async function setup() {
  const t = await servicesDatabase(["orders"]);
  const env = envOf(t.url);
  const db = t.open({ schema: "orders" });
  const startOne = async (more: Record<string, string> = {}) => {
    const service = await start({ ...env, ...more }, { openBus: async () => memoryBus() });
    return {
      ...service,
      call: async (method: string, path: string, payload?: object, key = "k1") => {
        const answer = await fetch(`${service.url}${path}`, {
          method,
          headers: { authorization: "Bearer tdk_desk", "idempotency-key": key, "content-type": "application/json" },
          ...(payload && { body: JSON.stringify(payload) }),
        });
        // biome-ignore lint/suspicious/noExplicitAny: the response of the service.
        return { status: answer.status, body: (await answer.json()) as any };
      },
      [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
    };
  };
  return { db, startOne, [Symbol.asyncDispose]: () => t[Symbol.asyncDispose]() };
}

const order = bodyOf("k1", { price: "61000" });

test("an order is accepted, sent and published; a replay after a restart has its result", async () => {
  await using t = await setup();
  const filled = { status: "succeeded", broker_order_id: expect.any(String), result: { status: "filled" } };
  {
    await using service = await t.startOne();
    expect((await service.call("POST", "/do/order", order)).status).toBe(201);
    await until("the broker has it", async () => {
      return (await service.call("GET", "/do/order/k1")).body.status === "succeeded";
    });
    await until("the events of acceptance, success and fill are published", async () => {
      const { rows } = await t.db.query(`select count(*)::int as n from outbox_events where status = 'PUBLISHED'`);
      return rows[0].n === 3;
    });
  }
  await using again = await t.startOne();
  const repeated = await again.call("POST", "/do/order", order);
  expect(repeated).toMatchObject({ status: 200, body: filled });
});

test("nothing is sent while trading is halted, also after a restart; all is when it resumes", async () => {
  await using t = await setup();
  {
    await using api = await t.startOne({ ORDERS_ROLES: "api" });
    await api.call("POST", "/do/order", order);
    await api.call("PUT", "/v1/orders/trading-state", { mode: "halt", reason: "a drill" });
  }
  await using service = await t.startOne();
  expect((await service.call("POST", "/do/order", bodyOf("k2"), "k2")).status).toBe(503);
  expect((await service.call("GET", "/do/order/k1")).body).toMatchObject({ status: "pending", attempts: 0 });
  await service.call("PUT", "/v1/orders/trading-state", { mode: "active", reason: "the drill is over" });
  await until("it is sent", async () => (await service.call("GET", "/do/order/k1")).body.status === "succeeded");
});

test("with required reconciliation, orders are accepted after the first one", async () => {
  await using t = await setup();
  const required = { ORDERS_REQUIRE_RECONCILIATION: "true" };
  await using api = await t.startOne({ ...required, ORDERS_ROLES: "api" });
  expect((await api.call("POST", "/do/order", order)).body.code).toBe("reconciliation-failing");
  await using _reconciler = await t.startOne({ ...required, ORDERS_ROLES: "reconciler" });
  await until("it is taken", async () => (await api.call("POST", "/do/order", order)).status === 201);
});

test("errors in the instruments file or in the settings prevent the start", async () => {
  await using t = await setup();
  const path = new URL("package.json", import.meta.url).pathname;
  await expect(t.startOne({ ORDERS_INSTRUMENTS: path })).rejects.toThrow(/package.json:2: name is not known here/);
  const env = envOf("postgres://localhost/x");
  expect(configErrors({ ...env, ORDERS_ROLES: "api,sender", ORDERS_BROKER: "paper" })).toEqual([]);
  expect(configErrors({ ...env, ORDERS_ROLES: "broker", ORDERS_BROKER: "fax" })).toEqual([
    "ORDERS_ROLES should name one or more of api, maintenance, reconciler, relay, sender, with commas between them",
    'ORDERS_BROKER is "fax" and should be paper or http',
  ]);
});
