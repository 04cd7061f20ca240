import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { afterEach, expect, test, vi } from "vitest";
import { reservePoints } from "../commands/reserve-points.ts";
import { longAgo, setup } from "../testing.ts";

afterEach(() => void vi.useRealTimers());

/** Many that are due, each a millisecond after the one before, and in another order than they were booked. */
const insertDue = `
insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash)
select lpad(to_hex(n), 32, '0')::uuid, 'u_' || n % 1000, 1, timestamptz '2020-01-01' + (n * 7919 % $1) * interval '1 ms',
       'k' || n, sha256(int4send(n::int))
  from generate_series(1, $1::bigint) n`;

test("two schedulers at once hand over each reservation once", async () => {
  await using t = await setup();
  await t.db.query(insertDue, [3_000]);
  const two = [t.process().scheduler({ batchMax: 50 }), t.process().scheduler({ batchMax: 50 })];
  let sent = 0;
  await until("all are handed over", async () => {
    for (const each of await Promise.all(two.map((one) => one.runOnce()))) sent += each;
    return (await t.statuses()).PENDING === undefined;
  });
  expect(sent).toBe(3_000);
  expect(await t.dueEvents()).toHaveLength(3_000);
});

test.each([1, -1])(
  "a process whose clock is %i h off is neither early nor late: the database's clock decides",
  async (hours) => {
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
  },
);

test("what is booked for the next moment is handed over then, not before and not at the next poll", async () => {
  await using t = await setup();
  await using wakeups = openWakeups({ url: t.url });
  await wakeups.listening;
  const onError = vi.fn();
  const db = t.open();
  const asked = vi.spyOn(db, "query");
  await using running = t.process(db).scheduler({ wakeups, intervalMs: 600_000, onError });
  running.start();
  // The end of a look: when the next thing is due, it asks the pool and no transaction. From then on it sleeps for ten minutes.
  await until("it has found nothing", () => asked.mock.settledResults[0]?.type === "fulfilled");
  const book = reservePoints({ db: t.db, soonMs: 600_000, onSoon: () => wakeups.signal("t") });
  const [{ at }] = await t.rows(
    `select to_char((now() + interval '400 ms') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.USZ') as at`,
  );
  const key = { scope: "shop POST /r", key: "k", requestHash: Buffer.alloc(32) };
  await book({ key, userId: "u_1", amount: 1n, executeAt: at });
  await until("it is handed over", async () => (await t.statuses()).PROCESSING === 1);
  const [{ late }] = await t.rows(
    `select extract(epoch from sent_at - execute_at)::float8 * 1000 as late from point_reservations`,
  );
  expect(late).toBeGreaterThanOrEqual(0);
  expect(onError).not.toHaveBeenCalled();
});

test("no more than the bound are under way, and the rest goes when there is room", async () => {
  await using t = await setup();
  await t.db.query(insertDue, [25]);
  const bounded = t.scheduler({ inFlightMax: 10, batchMax: 4 });
  expect(await bounded.runOnce()).toBe(10);
  expect(await bounded.runOnce()).toBe(0);
  const first = await t.dueEvents();
  await t.work(first.slice(0, 3));
  expect(await bounded.runOnce()).toBe(3);
  expect(await t.statuses()).toEqual({ DONE: 3, PENDING: 12, PROCESSING: 10 });
});

test("many schedulers at once let no more through than the bound", async () => {
  await using t = await setup();
  await t.db.query(insertDue, [400]);
  const many = Array.from({ length: 6 }, () => t.process().scheduler({ inFlightMax: 100, batchMax: 90 }));
  for (let rounds = 0; rounds < 5; rounds++) await Promise.all(many.map((each) => each.runOnce()));
  expect(await t.statuses()).toEqual({ PENDING: 300, PROCESSING: 100 });
});

test("10,000 that are due at once drain in their order, with no more than the bound under way at any moment", async () => {
  await using t = await setup();
  await t.db.query(insertDue, [10_000]);
  // A bound that no batch divides: the last of every round is cut short by it.
  const bounded = t.scheduler({ inFlightMax: 1_030, batchMax: 100 });
  const underWay: number[] = [];
  for (let done = 0; done < 10_000; ) {
    await bounded.runOnce();
    underWay.push((await t.statuses()).PROCESSING ?? 0);
    const events = await t.dueEvents({ skip: done });
    for (let n = 0; n < events.length; n += 500) await t.work(events.slice(n, n + 500));
    done += events.length;
  }
  expect(underWay.slice(0, -1)).toEqual(Array(9).fill(1_030));
  expect(await t.statuses()).toEqual({ DONE: 10_000 });
  const [{ out_of_order, granted }] = await t.rows(
    `select (select count(*)::int from (
               select r.execute_at < lag(r.execute_at) over (order by o.position) as earlier
                 from outbox_events o join point_reservations r on r.id = o.event_id) x where earlier) as out_of_order,
            (select sum(balance)::int from point_root) as granted`,
  );
  expect({ out_of_order, granted }).toEqual({ out_of_order: 0, granted: 10_000 });
});

test("what the worker has not ended within an hour it is told again, by the same event; it is granted once", async () => {
  await using t = await setup();
  await t.reserve();
  const one = t.scheduler();
  expect(await one.runOnce()).toBe(1);
  const events = () => t.rows(`select event_id, status from outbox_events where subject = 'points.reservations'`);
  const [told] = await events();
  const hourPasses = () => t.db.query(`update point_reservations set sent_at = sent_at - interval '61 min'`);
  expect(await one.runOnce()).toBe(0);
  // Not published yet: nothing to be done.
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([told]);
  // Being published: left alone.
  const leased = `status = 'IN_FLIGHT', locked_by = 'relay', locked_at = now(), lease_until = now() + interval '1 min'`;
  await t.db.query(`update outbox_events set ${leased}`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([{ ...told, status: "IN_FLIGHT" }]);
  await t.db.query(`update outbox_events set status = 'PENDING', lease_until = null`);
  // Given up by the relay: an operator's to redrive.
  await t.db.query(`update outbox_events set status = 'FAILED', attempt_count = 10`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([{ ...told, status: "FAILED" }]);
  await t.db.query(`update outbox_events set status = 'PENDING', attempt_count = 0`);
  // Published, and never heard of.
  await t.db.query(`update outbox_events set status = 'PUBLISHED', published_at = now()`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([told]);
  // Published so long ago that its row was removed.
  await t.db.query(`delete from outbox_events`);
  await hourPasses();
  expect(await one.runOnce()).toBe(1);
  expect(await events()).toEqual([told]);
  const deliveries = await t.dueEvents();
  await t.work([...deliveries, ...deliveries]);
  await hourPasses();
  expect(await one.runOnce()).toBe(0);
  expect(await t.balanceOf("u_1")).toBe(100n);
  expect(await t.rows(`select attempt_count from point_reservations`)).toEqual([{ attempt_count: 6 }]);
});

test("a scheduler outlives a database that goes away, and goes on when it is back", async () => {
  await using t = await setup();
  const onError = vi.fn();
  const db = t.open();
  await using running = t.process(db).scheduler({ intervalMs: 20, onError });
  running.start();
  await t.reserve({ at: longAgo });
  await until("the first is handed over", async () => (await t.statuses()).PROCESSING === 1);
  await until("it has met the loss", async () => {
    await t.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
    return onError.mock.calls.length > 0;
  });
  await t.reserve({ at: longAgo });
  await until("the second is too", async () => (await t.statuses()).PROCESSING === 2);
});
