import { expect, test } from "vitest";
import { inSeconds, nextMillisecond } from "../testing.ts";
import { most, setup } from "./testing.ts";

const seed = { user_id: "testUser1", point_amount: 100, execute_at: "2026-01-15T10:00:00+09:00" };
const ahead = (more: object = {}) => ({ ...seed, execute_at: "2999-01-15T10:00:00+09:00", ...more });

test("a request without a key is identified by its body", async () => {
  await using t = await setup();
  const created = await t.post("/point/reserve", { body: ahead() });
  expect([created.status, created.json]).toEqual([
    201,
    {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      user_id: "testUser1",
      point_amount: 100,
      execute_at: "2999-01-15T01:00:00.000000Z",
      status: "PENDING",
      created_at: expect.any(String),
    },
  ]);
  const again = await t.post("/point/reserve", { body: ahead({ point_amount: "100" }) });
  expect([again.status, again.isReplay, again.text]).toEqual([201, true, created.text]);
  const other = await t.post("/point/reserve", { body: ahead({ point_amount: 101 }) });
  expect([other.isReplay, other.json.id === created.json.id]).toEqual([false, false]);
  const shown = await t.get(`/v1/points/reservations/${created.json.id}`);
  expect(shown.json).toEqual({ ...created.json, attempt_count: 0, updated_at: created.json.created_at });
  expect((await t.get("/v1/points/reservations/0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f")).status).toBe(404);
});

test("a key means the same on both paths, and another body under it is refused", async () => {
  await using t = await setup();
  const first = await t.post("/point/reserve", { key: "k", body: ahead() });
  const again = await t.post("/v1/points/reservations", { key: "k", body: ahead({ point_amount: "100" }) });
  expect([again.status, again.isReplay, again.text]).toEqual([201, true, first.text]);
  const other = await t.post("/v1/points/reservations", { key: "k", body: ahead({ reason: "other" }) });
  expect([other.status, other.json.code]).toEqual([409, "idempotency-conflict"]);
  for (const sent of [
    { body: ahead() },
    { key: "k2", body: ahead() },
    { key: "k", body: ahead(), holder: "game" as const },
  ])
    expect((await t.post("/point/reserve", sent)).isReplay).toBe(false);
  expect(await t.statuses()).toEqual({ PENDING: 4 });
});

test("reserved points are listed page by page with their exact sum", async () => {
  await using t = await setup();
  for (const [key, amount] of Object.entries({ a: most, b: most, c: "5" })) {
    await t.post("/point/reserve", { key, body: ahead({ point_amount: amount }) });
    await nextMillisecond();
  }
  const done = await t.post("/point/reserve", { key: "d", body: seed });
  await t.db.query(`update point_reservations set status = 'PROCESSING', sent_at = now() where point_amount = 5`);
  await t.db.query(`update point_reservations set status = 'CANCELLED' where id = $1`, [done.json.id]);
  const first = await t.get("/users/testUser1/reserved-points?limit=2");
  const sum = 2n * BigInt(most) + 5n;
  expect(first.text).toContain(`"reserved_points":${sum},`);
  expect(first.text).toContain(`"point_amount":${most},`);
  expect(first.json.reservations.map((r: { status: string }) => r.status)).toEqual(["PROCESSING", "PENDING"]);
  const second = await t.get(`/users/testUser1/reserved-points?limit=2&cursor=${first.json.next_cursor}`);
  expect(second.json.reservations.length).toBe(1);
  expect(second.json).not.toHaveProperty("next_cursor");
  expect((await t.get("/point/confirm?user_id=testUser1")).text).toContain(`"pending":${sum}}`);
  const all = (await t.get("/v1/points/users/testUser1/reservations")).json;
  expect(all.reservations.length).toBe(4);
  const cancelled = (await t.get("/v1/points/users/testUser1/reservations?status=CANCELLED")).json;
  expect(cancelled.reservations.map((r: { id: string }) => r.id)).toEqual([done.json.id]);
  expect((await t.get("/users/unknown/reserved-points")).json).toEqual({
    user_id: "unknown",
    reserved_points: 0,
    reservations: [],
  });
});

test("times have any offset, microseconds, and years from 0001 to 9999", async () => {
  await using t = await setup();
  const kept = [
    ["2028-02-29T12:00:00Z", "2028-02-29T12:00:00.000000Z"], // a leap day
    ["2027-01-31T23:30:00-05:30", "2027-02-01T05:00:00.000000Z"], // over a month's end
    ["2027-12-31T23:59:59.1234561+00:00", "2027-12-31T23:59:59.123457Z"], // rounded up: never early
    ["2028-01-01T08:00:00+14:00", "2027-12-31T18:00:00.000000Z"],
    ["2027-06-01T00:00:00-00:00", "2027-06-01T00:00:00.000000Z"],
    ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"],
    ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"],
  ] as const;
  for (const [given, utc] of kept) {
    const answer = await t.post("/point/reserve", { body: { ...seed, execute_at: given } });
    expect([given, answer.status, answer.json.execute_at]).toEqual([given, 201, utc]);
  }
  const refused = [
    "2027-02-29T00:00:00Z",
    "2027-04-31T00:00:00Z",
    "2027-13-01T00:00:00Z",
    "2027-01-01T24:00:00Z",
    "2027-01-01T00:00:60Z",
    "2016-12-31T23:59:60Z", // a real leap second
    "10000-01-01T00:00:00Z",
    "9999-12-31T23:59:59-00:01", // the year 10000 in UTC
    "9999-12-31T23:59:59.9999999Z", // rounded up, it is the year 10000
    "0001-01-01T00:00:00+00:01",
    "2027-01-01T00:00:00", // no offset
    "2027-01-01T00:00:00+24:00",
    "2027-01-01 00:00:00Z",
    "2027-01-01",
    "tomorrow",
    1_800_000_000,
  ];
  for (const execute_at of refused) {
    const answer = await t.post("/point/reserve", { body: { ...seed, execute_at } });
    expect([execute_at, answer.status, answer.json.errors?.[0].field]).toEqual([execute_at, 400, "body.execute_at"]);
  }
  expect(await t.statuses()).toEqual({ PENDING: kept.length });
});

test("a time in the past is due at once, and the granted points have their expiry", async () => {
  await using t = await setup();
  const expires_at = inSeconds(3_600);
  const { id } = (await t.post("/point/reserve", { body: { ...seed, expires_at, reason: "welcome" } })).json;
  expect(await t.scheduler().runOnce()).toBe(1);
  expect((await t.get(`/v1/points/reservations/${id}`)).json.status).toBe("PROCESSING");
  await t.work(await t.dueEvents());
  const done = (await t.get(`/v1/points/reservations/${id}`)).json;
  expect(done).toMatchObject({ status: "DONE", attempt_count: 1, transaction_id: expect.any(String) });
  expect((await t.get("/point/confirm?user_id=testUser1")).json).toMatchObject({ balance: 100, pending: 0 });
  const { lots } = (await t.get("/v1/points/users/testUser1/expiring?within_days=1")).json;
  expect(lots).toEqual([{ lot_id: done.transaction_id, remaining: 100, granted: 100, expires_at }]);
  const tooSoon = await t.post("/point/reserve", { body: ahead({ expires_at: "2999-01-15T01:00:00Z" }) });
  expect([tooSoon.status, tooSoon.json.code]).toEqual([422, "lot-end-in-the-past"]);
});

test("only a PENDING reservation can be cancelled; a repeated cancel is replayed", async () => {
  await using t = await setup();
  const { id } = (await t.post("/point/reserve", { body: ahead() })).json;
  const cancel = (key?: string, of = id) => t.del(`/v1/points/reservations/${of}`, key === undefined ? {} : { key });
  expect((await cancel()).json.code).toBe("idempotency-key-missing");
  const first = await cancel("k");
  expect([first.status, first.json]).toEqual([200, { id, status: "CANCELLED" }]);
  const again = await cancel("k");
  expect([again.status, again.isReplay, again.text]).toEqual([200, true, first.text]);
  const late = await cancel("k2");
  expect([late.status, late.json.code]).toEqual([409, "reservation-not-pending"]);
  const none = await cancel("k3", "0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f");
  expect([none.status, none.json.code]).toEqual([404, "reservation-not-found"]);
  expect((await cancel("k3", "x")).json.errors[0].field).toBe("path.reservation_id");
  // The path is part of the request, so the same key for another reservation conflicts.
  const { id: other } = (await t.post("/point/reserve", { body: ahead({ point_amount: 7 }) })).json;
  expect((await cancel("k", other)).json.code).toBe("idempotency-conflict");
  expect(await t.scheduler().runOnce()).toBe(0);
});
