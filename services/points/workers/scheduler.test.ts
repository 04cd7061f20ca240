import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { afterEach, expect, test, vi } from "vitest";
import { reservePoints } from "../commands/reserve-points.ts";
import { longAgo, setup } from "../testing.ts";

afterEach(() => void vi.useRealTimers());

/** Due reservations, a millisecond apart, in another order than they were created. */
const insertDueSql = `
insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash)
select lpad(to_hex(n), 32, '0')::uuid, 'u_' || n % 1000, 1, timestamptz '2020-01-01' + (n * 7919 % $1) * interval '1 ms',
       'k' || n, sha256(int4send(n::int))
  from generate_series(1, $1::bigint) n`;

test("two concurrent schedulers dispatch each reservation once", async () => {
  await using t = await setup();
  await t.db.query(insertDueSql, [3_000]);
  const two = [t.process().scheduler({ batchMax: 50 }), t.process().scheduler({ batchMax: 50 })];
  let sent = 0;
  await until("all are dispatched", async () => {
    for (const each of await Promise.all(two.map((one) => one.runOnce()))) sent += each;
    return (await t.statuses()).PENDING === undefined;
  });
  expect(sent).toBe(3_000);
  expect(await t.dueEvents()).toHaveLength(3_000);
});

test.each([1, -1])("a process whose clock is %i h off dispatches by the database's clock", async (hours) => {
  await using t = await setup();
  const [{ soon, past }] = await t.rows(
    `select to_char((now() + interval '30 min') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SSZ') as soon,
            to_char((now() - interval '1 s') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SSZ') as past`,
  );
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hours * 3_600_000 });
  await t.reserve({ at: soon, user: "later" });
  await t.reserve({ at: past, user: "now" });
  expect(await t.scheduler().runOnce()).toBe(1);
  await t.work(await t.dueEvents());
  expect([await t.balanceOf("now"), await t.balanceOf("later")]).toEqual([100n, 0n]);
});

test("a reservation that is due soon is dispatched on time, not at the next poll", async () => {
  await using t = await setup();
  await using wakeups = openWakeups({ url: t.url });
  await wakeups.listening;
  const onError = vi.fn();
  const db = t.open();
  const queries = vi.spyOn(db, "query");
  await using running = t.process(db).scheduler({ wakeups, intervalMs: 600_000, onError });
  running.start();
  // A run ends with a query on the pool, outside a transaction. Then the scheduler sleeps for ten minutes.
  await until("the first run ends", () => queries.mock.settledResults[0]?.type === "fulfilled");
  const reserve = reservePoints({ db: t.db, soonMs: 600_000, onSoon: () => wakeups.signal("t") });
  const [{ at }] = await t.rows(
    `select to_char((now() + interval '400 ms') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.USZ') as at`,
  );
  const key = { scope: "shop POST /r", key: "k", requestHash: Buffer.alloc(32) };
  await reserve({ key, userId: "u_1", amount: 1n, executeAt: at });
  await until("it is dispatched", async () => (await t.statuses()).PROCESSING === 1);
  const [{ late }] = await t.rows(
    `select extract(epoch from sent_at - execute_at)::float8 * 1000 as late from point_reservations`,
  );
  expect(late).toBeGreaterThanOrEqual(0);
  expect(onError).not.toHaveBeenCalled();
});

test("at most inFlightMax reservations are PROCESSING; the rest follows as they are granted", async () => {
  await using t = await setup();
  await t.db.query(insertDueSql, [25]);
  const scheduler = t.scheduler({ inFlightMax: 10, batchMax: 4 });
  expect(await scheduler.runOnce()).toBe(10);
  expect(await scheduler.runOnce()).toBe(0);
  const first = await t.dueEvents();
  await t.work(first.slice(0, 3));
  expect(await scheduler.runOnce()).toBe(3);
  expect(await t.statuses()).toEqual({ DONE: 3, PENDING: 12, PROCESSING: 10 });
});

test("concurrent schedulers together respect inFlightMax", async () => {
  await using t = await setup();
  await t.db.query(insertDueSql, [400]);
  const many = Array.from({ length: 6 }, () => t.process().scheduler({ inFlightMax: 100, batchMax: 90 }));
  for (let rounds = 0; rounds < 5; rounds++) await Promise.all(many.map((each) => each.runOnce()));
  expect(await t.statuses()).toEqual({ PENDING: 300, PROCESSING: 100 });
});

test("10,000 due reservations drain in order, never more than inFlightMax at once", async () => {
  await using t = await setup();
  await t.db.query(insertDueSql, [10_000]);
  // Not a multiple of the batch size, so the last batch of every run is shortened.
  const scheduler = t.scheduler({ inFlightMax: 1_030, batchMax: 100 });
  const inFlight: number[] = [];
  for (let done = 0; done < 10_000; ) {
    await scheduler.runOnce();
    inFlight.push((await t.statuses()).PROCESSING ?? 0);
    const events = await t.dueEvents({ skip: done });
    for (let n = 0; n < events.length; n += 500) await t.work(events.slice(n, n + 500));
    done += events.length;
  }
  expect(inFlight.slice(0, -1)).toEqual(Array(9).fill(1_030));
  expect(await t.statuses()).toEqual({ DONE: 10_000 });
  const [{ out_of_order, granted }] = await t.rows(
    `select (select count(*)::int from (
               select r.execute_at < lag(r.execute_at) over (order by o.position) as earlier
                 from outbox_events o join point_reservations r on r.id = o.event_id) x where earlier) as out_of_order,
            (select sum(balance)::int from point_root) as granted`,
  );
  expect({ out_of_order, granted }).toEqual({ out_of_order: 0, granted: 10_000 });
});

test("a reservation that is PROCESSING for an hour is dispatched again and granted once", async () => {
  await using t = await setup();
  await t.reserve();
  const one = t.scheduler();
  expect(await one.runOnce()).toBe(1);
  const events = () => t.rows(`select event_id, status from outbox_events where subject = 'points.reservations'`);
  const [event] = await events();
  const hourPasses = () => t.db.query(`update point_reservations set sent_at = sent_at - interval '61 min'`);
  expect(await one.runOnce()).toBe(0);
  // Not published yet: the event stays as it is.
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([event]);
  // Claimed by a relay: the event stays as it is.
  const leased = `status = 'IN_FLIGHT', locked_by = 'relay', locked_at = now(), lease_until = now() + interval '1 min'`;
  await t.db.query(`update outbox_events set ${leased}`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([{ ...event, status: "IN_FLIGHT" }]);
  await t.db.query(`update outbox_events set status = 'PENDING', lease_until = null`);
  // Dead-lettered by the relay: only an operator redrives it.
  await t.db.query(`update outbox_events set status = 'FAILED', attempt_count = 10`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([{ ...event, status: "FAILED" }]);
  await t.db.query(`update outbox_events set status = 'PENDING', attempt_count = 0`);
  // Published and lost: the event is published again.
  await t.db.query(`update outbox_events set status = 'PUBLISHED', published_at = now()`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([event]);
  // Deleted by retention: the event is inserted again.
  await t.db.query(`delete from outbox_events`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([event]);
  const deliveries = await t.dueEvents();
  await t.work([...deliveries, ...deliveries]);
  await hourPasses();
  expect(await one.runOnce()).toBe(0);
  expect(await t.balanceOf("u_1")).toBe(100n);
  expect(await t.rows(`select attempt_count from point_reservations`)).toEqual([{ attempt_count: 6 }]);
});

test("a scheduler continues after its database connections are lost", async () => {
  await using t = await setup();
  const onError = vi.fn();
  const db = t.open();
  await using running = t.process(db).scheduler({ intervalMs: 20, onError });
  running.start();
  await t.reserve({ at: longAgo });
  await until("the first is dispatched", async () => (await t.statuses()).PROCESSING === 1);
  await until("the scheduler reports the loss", async () => {
    await t.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
    return onError.mock.calls.length > 0;
  });
  await t.reserve({ at: longAgo });
  await until("the second is dispatched", async () => (await t.statuses()).PROCESSING === 2);
});
