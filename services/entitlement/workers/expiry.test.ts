import { decodeEvent, encodeEvent } from "@todoke/contracts";
import type { Db } from "@todoke/kernel/db";
import { digestJson } from "@todoke/kernel/idempotency";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { expireEntitlements } from "../store/expire-entitlements.ts";
import { body, setup } from "../testing.ts";
import { startExpiry } from "./expiry.ts";

const later = { ...body, expires_at: "2999-12-31T23:59:59.5+09:00" };

/** Moves every end time to an hour ago. */
const passTime = (db: Db) =>
  db.query(`update entitlements set expires_at = now() - interval '1 hour' where expires_at is not null`);

test("a grant with an end shows expires_at, and others do not", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  const granted = await post("grants", "key-1", later);
  expect([granted.statusCode, granted.json()]).toMatchObject([
    201,
    { status: "ACTIVE", version: 1, expires_at: "2999-12-31T14:59:59.500000Z" },
  ]);
  expect((await get("/v1/users/u_123/entitlements/item1")).json()).toEqual(granted.json());
  expect((await get("/v1/users/u_123/entitlements")).json().entitlements[0]).toMatchObject({
    expires_at: granted.json().expires_at,
  });
  const unlimited = (await post("grants", "key-2")).json();
  expect(unlimited).not.toHaveProperty("expires_at");
  expect((await get("/v1/users/u_123/entitlements/item1")).json()).toEqual(unlimited);
  await post("grants", "key-3", later);
  expect((await post("revokes", "key-4")).json()).not.toHaveProperty("expires_at");
});

test("an entitlement reads as EXPIRED from its end time on, before the expiry worker runs", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  await post("grants", "key-1", later);
  await post("grants", "key-2", { ...body, stock_keeping_unit: "item2" });
  await passTime(t.db);
  const check = async () => (await get("/v1/users/u_123/entitlements/item1")).json();
  expect(await check()).toMatchObject({ status: "EXPIRED", version: 1 });
  const named = async (status: string) =>
    (await get(`/v1/users/u_123/entitlements?status=${status}`))
      .json()
      .entitlements.map((each: { stock_keeping_unit: string }) => each.stock_keeping_unit);
  expect([await named("ACTIVE"), await named("EXPIRED")]).toEqual([["item2"], ["item1"]]);
  await expireEntitlements(t.db, 10);
  expect(await check()).toMatchObject({ status: "EXPIRED", version: 2 });
  expect([await named("ACTIVE"), await named("EXPIRED")]).toEqual([["item2"], ["item1"]]);
});

test("an expiry emits one event that fits the contract and is in the history", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  await post("grants", "key-1", later);
  await passTime(t.db);
  expect([await expireEntitlements(t.db, 10), await expireEntitlements(t.db, 10)]).toEqual([1, 0]);
  const { rows } = await t.db.query(`select * from outbox_events order by position`);
  expect(rows[1]).toMatchObject({ event_type: "EntitlementExpired", aggregate_key: "u_123/item1", version: 2n });
  const event = decodeEvent("EntitlementExpired", encodeEvent("EntitlementExpired", rows[1].payload));
  expect(event).toMatchObject({ userId: "u_123", source: "purchase", sourceId: "p_456", version: 2n });
  expect(Number(event.occurredAt.seconds) - Number(event.expiresAt?.seconds)).toBeGreaterThanOrEqual(3_600);
  const { history } = (await get("/v1/users/u_123/entitlements/item1/history")).json();
  expect(history[0]).toMatchObject({ version: 2, action: "EXPIRE", caller: "todoke:expiry", event_id: event.eventId });
  expect((await post("grants", "key-2")).json()).toMatchObject({ status: "ACTIVE", version: 3 });
  expect(await expireEntitlements(t.db, 10)).toBe(0);
});

test("four processes expire a thousand entitlements, each with one event", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into entitlements (user_id, stock_keeping_unit, status, source, source_id, expires_at)
     select 'u_' || i, 'item1', 'ACTIVE', 'purchase', 'p', now() - i * interval '1 second' from generate_series(1, 1000) i`,
  );
  let batches = 0;
  const options = { intervalMs: 5, onCommitted: () => void batches++, onError: () => {} };
  const processes = Array.from({ length: 4 }, () => startExpiry(t.open({ poolMax: 1 }), options));
  await until("all are EXPIRED", async () => (await t.rows()).events >= 1_000);
  for (const each of processes) await each[Symbol.asyncDispose]();
  const { rows } = await t.db.query(`select status, version::int, count(*)::int from entitlements group by 1, 2`);
  expect(rows).toEqual([{ status: "EXPIRED", version: 2, count: 1_000 }]);
  expect(await t.rows()).toMatchObject({ events: 1_000, audit: 1_000 });
  expect(batches).toBeGreaterThanOrEqual(5);
});

test("more entitlements than a batch holds expire in one pass", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into entitlements (user_id, stock_keeping_unit, status, source, source_id, expires_at)
     select 'u_' || i, 'item1', 'ACTIVE', 'purchase', 'p', now() - interval '1 hour' from generate_series(1, 201) i`,
  );
  const options = { intervalMs: 3_600_000, onCommitted: () => {}, onError: () => {} };
  await using _ = startExpiry(t.db, options);
  await until("all are EXPIRED", async () => (await t.rows()).events === 201);
});

test("a renewing grant wins over the expiry, even before it commits", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  await post("grants", "key-1", later);
  await passTime(t.db);
  const renewing = await t.db.connect();
  await renewing.query(`begin; update entitlements set expires_at = now() + interval '1 day', version = version + 1`);
  expect(await expireEntitlements(t.db, 10)).toBe(0); // without waiting for the lock
  await renewing.query("commit");
  renewing.release();
  expect(await expireEntitlements(t.db, 10)).toBe(0);
  expect((await get("/v1/users/u_123/entitlements/item1")).json()).toMatchObject({ status: "ACTIVE", version: 2 });
  expect((await t.rows()).events).toBe(1);
});

test("a grant with an end in the past is rejected, but its replay is not", async () => {
  await using t = await setup();
  const { post, batch } = await t.process();
  const past = { ...body, expires_at: "2020-01-01T00:00:00Z" };
  const refused = await post("grants", "key-1", past);
  expect([refused.statusCode, refused.json().code]).toEqual([422, "expiry-in-the-past"]);
  const item = { action: "grant", idempotency_key: "key-1", ...past };
  expect((await batch([item, { ...item, ...later, idempotency_key: "key-2" }])).json().results).toMatchObject([
    { status: 422, body: { code: "expiry-in-the-past" } },
    { status: 201, body: { version: 1 } },
  ]);
  expect(await t.rows()).toEqual({ entitlements: 1, events: 1, audit: 1, keys: 1 });
  // The same request, stored before its end time.
  await t.db.query(
    `insert into idempotency_keys select scope, 'key-1', $1, response_status, response_content_type, response_body, created_at, expires_at
       from idempotency_keys`,
    [digestJson(past)],
  );
  const replayed = await post("grants", "key-1", past);
  expect([replayed.statusCode, replayed.headers["idempotency-replayed"]]).toEqual([201, "true"]);
});

test("times that cannot be stored are rejected, and all offsets are accepted", async () => {
  await using t = await setup();
  const { post } = await t.process();
  const bad = ["tomorrow", "2999-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2999-12-31", 7, ""];
  for (const expires_at of [...bad, "2999-12-31T23:59:60Z", "2999-01-01T00:00:00", "2999-01-01 00:00:00Z"]) {
    const response = await post("grants", "key-1", { ...body, expires_at });
    expect([expires_at, response.statusCode]).toEqual([expires_at, 400]);
    expect(response.json().errors[0].field).toBe("body.expires_at");
  }
  expect((await post("revokes", "key-1", later)).statusCode).toBe(400);
  expect(await t.rows()).toEqual({ entitlements: 0, events: 0, audit: 0, keys: 0 });
  const farOff = await post("grants", "key-1", { ...body, expires_at: "2999-01-01T00:00:00.123456789+23:59" });
  expect(farOff.json().expires_at).toBe("2998-12-31T00:01:00.123000Z");
});

test("the search for expired entitlements is an index scan", async () => {
  await using t = await setup();
  const { rows } = await t.db.query(
    `explain select ctid from entitlements where status = 'ACTIVE' and expires_at <= now() order by expires_at limit 9 for update skip locked`,
  );
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toMatch(/Index Scan using entitlements_running_out/);
  expect(plan).not.toMatch(/Sort {2}|Seq Scan/);
});
