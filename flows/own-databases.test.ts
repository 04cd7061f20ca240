/** Every service on a database of its own, as a role that owns nothing (docs/guides/one-database-per-service.md). */
import { randomUUID } from "node:crypto";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openBrowser } from "@todoke/identity/testing";
import { fixedId, until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OwnDatabases, openOwnDatabases, roleOf } from "./own-databases.ts";
import { send } from "./security/http-client.ts";
import { serviceNames } from "./security/serve-all.ts";

let t: OwnDatabases;
beforeAll(async () => {
  t = await openOwnDatabases();
}, 300_000);
afterAll(() => t?.[Symbol.asyncDispose]());

const denied = "42501"; // insufficient_privilege
const longWait = { withinMs: 120_000 };

/** Calls a service with the API key that the owner has created. */
async function call(url: string, body?: object) {
  const options = body && { method: "POST", body, headers: { "idempotency-key": "k-1" } };
  const response = await send(url, { bearer: t.apiKey, ...options });
  return { status: response.status, body: JSON.parse(response.text) };
}

test("a grant is notified as SENT", async () => {
  const { status } = await call(`${t.serviceUrl("entitlement")}/v1/entitlements/grants`, {
    user_id: "u_1",
    stock_keeping_unit: "item1",
    reason: "purchase",
    purchase_id: "p_1",
  });
  expect(status).toBe(201);
  await until(
    "it is SENT",
    async () => {
      const inbox = await send(`${t.opsUrl("notification")}/debug/notification/inbox/u_1`);
      return JSON.parse(inbox.text).notifications[0]?.status === "SENT";
    },
    longWait,
  );
});

test("a reservation is granted", async () => {
  const reservation = { user_id: "u_2", point_amount: 100, execute_at: "2026-01-15T10:00:00+09:00" };
  expect((await call(`${t.serviceUrl("points")}/point/reserve`, reservation)).status).toBe(201);
  const balance = async () => (await call(`${t.serviceUrl("points")}/point/confirm?user_id=u_2`)).body.balance;
  await until("the points are granted", async () => (await balance()) === 100, longWait);
});

test("an order is filled", async () => {
  const order = {
    idempotency_key: "k-1",
    order_id: "o-1",
    instrument: "BTC-USD",
    side: "BUY",
    qty: "0.5",
    price: null,
  };
  const placed = await call(`${t.serviceUrl("orders")}/do/order`, { ...order, requested_at: "2026-01-31T09:30:00Z" });
  expect(placed.status).toBe(201);
  const status = async () => (await call(`${t.serviceUrl("orders")}/do/order/k-1`)).body.status;
  await until("the order has succeeded", async () => (await status()) === "succeeded", longWait);
});

/** Logs in through the provider's form; returns the cookie. */
async function logIn(username: string): Promise<string> {
  const browser = openBrowser();
  const form = await browser.visit((await browser.visit(`${t.origin}/login`)).url);
  const [, action = ""] = /<form[^>]* action="([^"]+)"/.exec(form.text) ?? [];
  const formUrl = new URL(action.replaceAll("&amp;", "&"), form.url);
  const back = await browser.visit(formUrl, { username, password: `${username}-demo` });
  const landed = await browser.visit(back.url);
  return /todoke=tds_[\w-]{43}/.exec(landed.headers.getSetCookie().join())?.[0] ?? "no cookie";
}

test("two players log in and are matched", async () => {
  const headers = { origin: t.origin, "x-todoke-request": "1" };
  const players = [await logIn("alice"), await logIn("bob")].map((cookie) => ({ ...headers, cookie }));
  const tickets: string[] = [];
  for (const player of players) {
    const me = await send(`${t.origin}/v1/me`, { headers: player });
    expect(me.status, me.text).toBe(200);
    const joined = await send(`${t.origin}/v1/matchmaking/queues/duel/tickets`, {
      method: "POST",
      headers: { ...player, "idempotency-key": randomUUID() },
      body: {},
    });
    expect(joined.status, joined.text).toBe(201);
    tickets.push(JSON.parse(joined.text).ticket_id);
  }
  for (const [n, player] of players.entries())
    await until(
      "the ticket is matched",
      async () => {
        const ticket = await send(`${t.origin}/v1/matchmaking/tickets/${tickets[n]}`, { headers: player });
        return JSON.parse(ticket.text).status === "MATCHED";
      },
      longWait,
    );
});

test("no role is a superuser or may create databases, roles or replicas", async () => {
  const { rows } = await t.admin.query(
    `select rolname from pg_roles
      where rolname like 'todoke%' and (rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)`,
  );
  expect(rows).toEqual([]);
});

test.each(serviceNames)("the role of %s cannot connect to the database of another service", async (service) => {
  for (const other of serviceNames.filter((each) => each !== service))
    expect(await t.attempt({ role: roleOf(service), database: roleOf(other) }, ["select 1"])).toEqual([
      ["select 1", denied],
    ]);
});

test.each(serviceNames)(
  "the role of %s can neither define tables, create keys, nor act as the owner",
  async (service) => {
    const schema = service.replaceAll("-", "_");
    const forbidden = [
      `create table ${schema}.another (id int)`,
      "create table public.another (id int)",
      "create temporary table another (id int)",
      "create schema another",
      `drop table ${schema}.outbox_events`,
      `alter table ${schema}.outbox_events disable trigger all`,
      `truncate ${schema}.outbox_events`,
      `update ${schema}.schema_migrations set version = version`,
      `delete from ${schema}.api_keys`,
      `update ${schema}.api_keys set scopes = '{read}'`,
      `update ${schema}.redrives set reason = 'another'`,
      `delete from ${schema}.redrives`,
      `set role ${roleOf(service)}_owner`,
      "set session_replication_role = replica",
    ];
    expect(await t.attempt({ role: roleOf(service) }, forbidden)).toEqual(forbidden.map((each) => [each, denied]));
  },
);

test.each([
  ["account", "audit_logs", "actor"],
  ["entitlement", "entitlement_audit", "caller"],
  ["orders", "order_status_history", "by"],
  ["orders", "trading_state_audit", "set_by"],
  ["orders", "order_resolutions", "by"],
  ["points", "point_transactions", "reason"],
] as const)("the role of %s cannot change or delete rows of %s", async (service, table, column) => {
  const forbidden = [`update ${service}.${table} set ${column} = 'another'`, `delete from ${service}.${table}`];
  expect(await t.attempt({ role: roleOf(service) }, forbidden)).toEqual(forbidden.map((each) => [each, denied]));
});

test("the role of matchmaking cannot change results", async () => {
  const forbidden = ["update matchmaking.matches set mode = 'x'", "update matchmaking.ticket_ends set user_id = 'x'"];
  expect(await t.attempt({ role: roleOf("matchmaking") }, forbidden)).toEqual(forbidden.map((each) => [each, denied]));
});

test("entitlement creates and drops audit partitions only through the functions, within their bounds", async () => {
  const [role, owner] = [roleOf("entitlement"), t.open(`${roleOf("entitlement")}_owner`, roleOf("entitlement"))];
  await owner.query(`create table entitlement.entitlement_audit_2001_01 partition of entitlement.entitlement_audit
                     for values from ('2001-01-01Z') to ('2001-02-01Z')`);
  const count = async () =>
    (await owner.query("select from pg_inherits where inhparent = 'entitlement.entitlement_audit'::regclass")).rowCount;
  const statements = [
    ["drop table entitlement.entitlement_audit_2001_01", denied],
    ["select entitlement.make_entitlement_audit_months(1000)", "ok"],
    ["select entitlement.drop_entitlement_audit_months(0)", "22023"], // invalid_parameter_value
  ];
  expect(
    await t.attempt(
      { role },
      statements.map(([statement = ""]) => statement),
    ),
  ).toEqual(statements);
  expect(await count()).toBe(1 + 13); // The old one, this month and a year ahead.
  expect(await t.attempt({ role }, ["select entitlement.drop_entitlement_audit_months(24)"])).toEqual([
    [expect.anything(), "ok"],
  ]);
  expect(await count()).toBe(13);
});

test("the bus in PostgreSQL works as a role that owns nothing", async () => {
  await t.createBus();
  await using bus = await openPostgresBus({ url: t.urlOf("todoke_bus"), onError: (error) => errors.push(error) });
  const errors: unknown[] = [];
  const received: string[] = [];
  const subjects = ["entitlement.events"];
  const event = {
    eventId: fixedId(1),
    eventType: "EntitlementGranted",
    subject: "entitlement.events",
    aggregateKey: "a",
    occurredAt: "2026-01-31T09:30:00Z",
    headers: {},
    payload: Buffer.from("payload"),
  };
  await bus.publish([event]); // Before the consumer: it gets the history too.
  await using _ = await bus.subscribe({
    consumer: "late",
    subjects,
    async handle(deliveries) {
      received.push(...deliveries.map(({ eventId }) => eventId));
      return deliveries.map(() => done);
    },
  });
  await bus.publish([{ ...event, eventId: fixedId(2) }]);
  await until("both events are received", () => received.length === 2);
  expect(errors).toEqual([]);
  const forbidden = [
    "update todoke_bus.bus_messages set payload = ''",
    "create table todoke_bus.another (id int)",
    "truncate todoke_bus.bus_messages",
    "drop table todoke_bus.bus_messages",
  ];
  expect(await t.attempt({ role: "todoke_bus" }, forbidden)).toEqual(forbidden.map((each) => [each, denied]));
});

test("nothing that the services did was refused by the database, and they stop in order", async () => {
  expect(await t.stop()).toBe(0);
  expect(t.output()).not.toContain("permission denied");
});
