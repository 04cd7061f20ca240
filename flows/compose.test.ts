/** deploy/compose.yaml without Docker: a process per service, with the environment files of the containers, on real engines. */
import { withChannel } from "@todoke/bus-rabbitmq/testing";
import { rabbitmqQueues } from "@todoke/contracts";
import { openBrowser } from "@todoke/identity/testing";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Composed, startComposed } from "./compose.ts";
import { send } from "./security/http-client.ts";

const longWait = { withinMs: 120_000 };
let t: Composed;
let apiKey: string;
beforeAll(async () => {
  t = await startComposed();
  const scopes = "entitlements:write,points:write,orders:write,read";
  const created = await t.asOwner("keys", "create", "shop", "--scopes", scopes, "--services", "all");
  apiKey = /^tdk_\S+/m.exec(created)?.[0] ?? "";
}, 300_000);
afterAll(() => t?.[Symbol.asyncDispose]());

async function call(url: string, body?: object) {
  const options = body && { method: "POST", body, headers: { "idempotency-key": "k-1" } };
  const response = await send(url, { bearer: apiKey, ...options });
  return { status: response.status, body: JSON.parse(response.text) };
}

test("every service is ready, and Prometheus can scrape it", async () => {
  expect(t.serviceNames).toHaveLength(7);
  for (const name of t.serviceNames) {
    const ready = async () => (await send(`${t.serviceUrl(name)}/readyz`)).status === 200;
    await until(`${name} is ready`, ready, longWait);
    expect((await send(`${t.opsUrl(name)}/metrics`)).status).toBe(200);
  }
});

test("a grant is notified as SENT", async () => {
  const grant = { user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_1" };
  expect((await call(`${t.serviceUrl("entitlement")}/v1/entitlements/grants`, grant)).status).toBe(201);
  const sent = async () => {
    const inbox = await send(`${t.opsUrl("notification")}/debug/notification/inbox/u_1`);
    return JSON.parse(inbox.text).notifications[0]?.status === "SENT";
  };
  await until("it is SENT", sent, longWait);
});

test("a reservation of points is granted over RabbitMQ", async () => {
  const reservation = { user_id: "u_2", point_amount: 100, execute_at: "2026-01-15T10:00:00+09:00" };
  expect((await call(`${t.serviceUrl("points")}/point/reserve`, reservation)).status).toBe(201);
  const balance = async () => (await call(`${t.serviceUrl("points")}/point/confirm?user_id=u_2`)).body.balance;
  await until("the points are granted", async () => (await balance()) === 100, longWait);
  const declared = await withChannel(t.rabbitmqUrl, (channel) =>
    channel.queueDeclare({ queue: rabbitmqQueues.points, passive: true }),
  );
  expect(declared.consumerCount).toBeGreaterThan(0);
});

test("a player logs in at the gateway", async () => {
  const browser = openBrowser();
  const form = await browser.visit((await browser.visit(`${t.origin}/login`)).url);
  const [, action = ""] = /<form[^>]* action="([^"]+)"/.exec(form.text) ?? [];
  const formUrl = new URL(action.replaceAll("&amp;", "&"), form.url);
  const back = await browser.visit(formUrl, { username: "alice", password: "alice-demo" });
  const landed = await browser.visit(back.url);
  const cookie = /todoke=tds_[\w-]{43}/.exec(landed.headers.getSetCookie().join())?.[0] ?? "";
  const me = await send(`${t.origin}/v1/me`, { headers: { cookie } });
  expect(me.status, me.text).toBe(200);
});

test("traces of the services reach the collector, and every service stops in order", async () => {
  expect(await t.stop()).toEqual(Object.fromEntries(t.serviceNames.map((name) => [name, 0])));
  expect(t.output()).not.toContain("permission denied");
  for (const name of ["entitlement", "notification", "points", "gateway-bff"])
    expect(t.collected).toContain(`${name} /v1/traces`);
});
