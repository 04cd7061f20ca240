import { decodeEvent, encodeEvent } from "@todoke/contracts";
import type { Db } from "@todoke/kernel/db";
import { digestOf } from "@todoke/kernel/idempotency";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { expireEntitlements } from "../store/expire-entitlements.ts";
import { body, setup } from "../testing.ts";
import { startExpiry } from "./expiry.ts";

const later = { ...body, expires_at: "2999-12-31T23:59:59.5+09:00" };

/** Time passes: what would run out in 2999 has run out an hour ago. */
const passTime = (db: Db) =>
  db.query(`update entitlements set expires_at = now() - interval '1 hour' where expires_at is not null`);

test("a grant until a time shows it, and the others look as ever", async () => {
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
  const forEver = (await post("grants", "key-2")).json();
  expect(forEver).not.toHaveProperty("expires_at");
  expect((await get("/v1/users/u_123/entitlements/item1")).json()).toEqual(forEver);
  await post("grants", "key-3", later);
  expect((await post("revokes", "key-4")).json()).not.toHaveProperty("expires_at");
});

test("from its time on a grant reads as EXPIRED, whether or not that was told", async () => {
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

test("the end is told once, by an event that fits the contract, and is in the history", async () => {
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

test("a thousand that run out, at four processes: each is told once, batch after batch", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into entitlements (user_id, stock_keeping_unit, status, source, source_id, expires_at)
     select 'u_' || i, 'item1', 'ACTIVE', 'purchase', 'p', now() - i * interval '1 second' from generate_series(1, 1000) i`,
  );
  let woken = 0;
  const options = { everyMs: 5, onCommitted: () => void woken++, onError: () => {} };
  const processes = Array.from({ length: 4 }, () => startExpiry(t.open({ poolMax: 1 }), options));
  await until("all are EXPIRED", async () => (await t.rows()).events >= 1_000);
  for (const each of processes) await each[Symbol.asyncDispose]();
  const { rows } = await t.db.query(`select status, version::int, count(*)::int from entitlements group by 1, 2`);
  expect(rows).toEqual([{ status: "EXPIRED", version: 2, count: 1_000 }]);
  expect(await t.rows()).toMatchObject({ events: 1_000, audit: 1_000 });
  expect(woken).toBeGreaterThanOrEqual(5);
});

test("a grant that renews before the end is told wins, also one that is not committed yet", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  await post("grants", "key-1", later);
  await passTime(t.db);
  const renewing = await t.db.connect();
  await renewing.query(`begin; update entitlements set expires_at = now() + interval '1 day', version = version + 1`);
  expect(await expireEntitlements(t.db, 10)).toBe(0); // and does not wait for it
  await renewing.query("commit");
  renewing.release();
  expect(await expireEntitlements(t.db, 10)).toBe(0);
  expect((await get("/v1/users/u_123/entitlements/item1")).json()).toMatchObject({ status: "ACTIVE", version: 2 });
  expect((await t.rows()).events).toBe(1);
});

test("what has passed cannot be granted, but its replay is answered as it was", async () => {
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
  // The same request, stored when its time was still to come.
  await t.db.query(
    `insert into idempotency_keys select scope, 'key-1', $1, response_status, response_content_type, response_body, created_at, expires_at
       from idempotency_keys`,
    [digestOf(past)],
  );
  const replayed = await post("grants", "key-1", past);
  expect([replayed.statusCode, replayed.headers["idempotency-replayed"]]).toEqual([201, "true"]);
});

test("times that cannot be kept are refused by name, and every offset is understood", async () => {
  await using t = await setup();
  const { post } = await t.process();
  const bad = ["tomorrow", "2999-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2999-12-31", 7, ""];
  for (const expires_at of [...bad, "2999-12-31T23:59:60Z", "2999-01-01T00:00:00", "2999-01-01 00:00:00Z"]) {
    const answer = await post("grants", "key-1", { ...body, expires_at });
    expect([expires_at, answer.statusCode]).toEqual([expires_at, 400]);
    expect(answer.json().errors[0].field).toBe("body.expires_at");
  }
  expect((await post("revokes", "key-1", later)).statusCode).toBe(400);
  expect(await t.rows()).toEqual({ entitlements: 0, events: 0, audit: 0, keys: 0 });
  const farOff = await post("grants", "key-1", { ...body, expires_at: "2999-01-01T00:00:00.123456789+23:59" });
  expect(farOff.json().expires_at).toBe("2998-12-31T00:01:00.123000Z");
});

test("the search for what has run out is an index probe", async () => {
  await using t = await setup();
  const { rows } = await t.db.query(
    `explain select ctid from entitlements where status = 'ACTIVE' and expires_at <= now() order by expires_at limit 9 for update skip locked`,
  );
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toMatch(/Index Scan using entitlements_running_out/);
  expect(plan).not.toMatch(/Sort {2}|Seq Scan/);
});
