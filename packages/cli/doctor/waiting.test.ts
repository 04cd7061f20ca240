import { openPostgresBus } from "@todoke/bus-postgres";
import type { Db } from "@todoke/kernel/db";
import { fixedId } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { runTodoke } from "../testing/command.ts";

/** The findings of one service. The server of the tests has faults of its own. */
async function doctor(url: string, service: string) {
  const { code, out } = await runTodoke(`doctor ${service} --json`, { DATABASE_URL: url });
  const { findings } = JSON.parse(out) as { findings: { level: string; of: string; says: string; todo?: string }[] };
  expect(code).toBe(findings.some(({ level }) => level === "fault") ? 1 : 0);
  return {
    says: findings.filter(({ of }) => of === service).map(({ level, says }) => `${level}: ${says}`),
    checked: new Set(findings.map(({ of }) => of)),
  };
}

const insertEvent = (db: Db, n: number, { status, attempts = 0 }: { status: string; attempts?: number }) =>
  db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count,
                                next_retry_at, last_error)
     values ($1, 'PointsAdded', 'points.events', 'u_1', $2, '{}', $3, $4, now() - interval '10 min', 'the broker says no')`,
    [fixedId(n), n, status, attempts],
  );

test("doctor of one service finds everybody who waits, and nothing else", async () => {
  await using t = await servicesDatabase(["points"]);
  const points = t.open({ schema: "points" });
  const upToDate = "ok: the schema is up to date";
  const calm = await doctor(t.url, "points");
  expect(calm.says).toEqual([upToDate, "ok: nobody waits: no dead letters, and nothing is late"]);
  // Nothing of the services that were not named.
  for (const other of ["entitlement", "Redis", "OpenID"]) expect(calm.checked).not.toContain(other);

  await insertEvent(points, 1, { status: "FAILED", attempts: 10 });
  await insertEvent(points, 2, { status: "PENDING", attempts: 3 });
  await points.query(
    `insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash, created_at)
     values (gen_random_uuid(), 'u_1', 5, now() - interval '3 h', 'k', sha256(''), now() - interval '3 h')`,
  );
  await points.query(`insert into inbox_attempts values ('points', $1, 4, 'no such account')`, [fixedId(3)]);
  const waiting = await doctor(t.url, "points");
  expect(waiting.says).toEqual([
    upToDate,
    "fault: 1 dead letter in outbox_events",
    "fault: 1 row in outbox_events failed three times or more: the broker says no",
    "fault: 1 aggregate in outbox_events is parked: later events wait behind a dead letter",
    "fault: 1 row in inbox_attempts failed three times or more: no such account",
    "fault: 1 row in point_reservations is late, the oldest by 3 h",
  ]);
  const text = await runTodoke("doctor points", { DATABASE_URL: t.url });
  expect(text.out).toMatch(/→ `todoke dead list points --table outbox_events`; .*\n/);
  expect(text.out).toMatch(/\n[1-9] faults, /);
});

test("an event that its consumer has not processed for a minute is a fault", async () => {
  await using t = await servicesDatabase(["points"]);
  await using bus = await openPostgresBus({ url: t.url });
  await (await bus.subscribe({ consumer: "points", subjects: ["points.reservations"], handle: async () => [] }))[
    Symbol.asyncDispose
  ]();
  const event = { eventId: fixedId(1), eventType: "T", subject: "points.reservations", aggregateKey: "a" };
  await bus.publish([{ ...event, occurredAt: "2026-01-01T00:00:00Z", headers: {}, payload: Buffer.from("x") }]);
  expect((await doctor(t.url, "points")).says).toContain("ok: nobody waits: no dead letters, and nothing is late");
  const db = t.open({ schema: "todoke_bus" });
  await db.query(`update bus_messages set published_at = published_at - interval '12 min'`);
  expect((await doctor(t.url, "points")).says).toContain(
    "fault: 1 event at the bus is not processed, the oldest for 12 min",
  );
});

test("orders that are unresolved or held by a halt are late", async () => {
  await using t = await servicesDatabase(["orders"]);
  const orders = t.open({ schema: "orders" });
  await orders.query(
    `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest,
                                adapter, instrument, side, qty, changed_by, expires_at, created_at, next_retry_at)
     select 'c', k, k, 'tdk-' || k, '{}', 'd', 'paper', 'X', 'BUY', 2, 'c', now(), now() - interval '5 h', now() + interval '5 s'
       from unnest(array['halted', 'unknown']) k`,
  );
  await orders.query(`update outbox_orders set status = 'sending', lease_until = now() where order_id = 'unknown'`);
  await orders.query(
    `update outbox_orders set status = 'unknown', in_doubt_since = now() - interval '4 h', last_error_code = 'TIMEOUT',
                              lease_until = null
      where order_id = 'unknown'`,
  );
  // The schema of the paper broker does not exist here, which is another finding.
  expect((await doctor(t.url, "orders")).says.slice(1)).toEqual([
    "fault: 1 row in outbox_orders (unknown) is late, the oldest by 4 h",
    "fault: 1 row in outbox_orders (held by a halt of trading) is late, the oldest by 5 h",
  ]);
});

test("a service that does not exist is rejected", async () => {
  const { code, err } = await runTodoke("doctor pints", {});
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('Did you mean "points"?') });
});
