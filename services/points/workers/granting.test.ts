/** A scheduler that grants due reservations itself, because its process is the worker too. */
import { openFaultProxy, until } from "@todoke/kernel/testing";
import { expect, test, vi } from "vitest";
import { grantDueReservations } from "../commands/grant-reservations.ts";
import { setup } from "../testing.ts";
import type { SchedulerOptions } from "./scheduler.ts";

type Setup = Awaited<ReturnType<typeof setup>>;

/** After a first batch, which was dispatched to the worker. */
async function grantingScheduler(process: Pick<Setup, "scheduler">, more: Partial<SchedulerOptions> = {}) {
  const scheduler = process.scheduler({ onGranted: () => {}, ...more });
  await scheduler.runOnce();
  return scheduler;
}

const reserveMany = (t: Setup, count: number, users = count) =>
  t.db.query(
    `insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash)
     select uuidv7(), 'u_' || n % $2, 1, now() - n * interval '1 ms', 'k' || n, sha256('') from generate_series(1, $1::int) n`,
    [count, users],
  );

test("a due reservation is granted and DONE in one commit, without an event for the worker", async () => {
  await using t = await setup();
  const delays: number[] = [];
  const scheduler = await grantingScheduler(t, { onGranted: (delaysMs) => delays.push(...delaysMs) });
  await t.reserve({ user: "u_1", amount: 70n });
  await t.reserve({ user: "u_2", at: "2999-01-01T00:00:00Z" });
  expect(await scheduler.runOnce()).toBe(1);
  expect(
    await t.rows(`select r.status, r.sent_at >= r.execute_at as in_time, r.attempt_count, x.kind, x.user_id, x.moved
                    from point_reservations r left join point_transactions x on x.id = r.transaction_id order by r.execute_at`),
  ).toEqual([
    { status: "DONE", in_time: true, attempt_count: 1, kind: "GRANT", user_id: "u_1", moved: 70n },
    { status: "PENDING", in_time: null, attempt_count: 0, kind: null, user_id: null, moved: null },
  ]);
  expect(await t.rows(`select event_type from outbox_events`)).toEqual([{ event_type: "PointsGranted" }]);
  expect(delays).toHaveLength(1);
  expect(await t.audit()).toEqual([]);
});

test("the first batch after a start is dispatched, so that the worker counts its attempts", async () => {
  await using t = await setup();
  await reserveMany(t, 30);
  // Two batches, because two are granted at once: all that a killed process may have had.
  expect(await t.scheduler({ onGranted: () => {}, batchMax: 10 }).runOnce()).toBe(30);
  expect(await t.statuses()).toEqual({ DONE: 10, PROCESSING: 20 });
  const [{ oldest_first }] = await t.rows(
    `select max(execute_at) filter (where status = 'PROCESSING') < min(execute_at) filter (where status = 'DONE') as oldest_first
       from point_reservations`,
  );
  expect(oldest_first).toBe(true);
});

test("reservations are granted once by schedulers that grant, one that dispatches, and the worker", async () => {
  await using t = await setup();
  const options = { batchMax: 50 };
  const granting = [await grantingScheduler(t.process(), options), await grantingScheduler(t.process(), options)];
  const all = [...granting, t.process().scheduler(options)];
  await reserveMany(t, 2_000, 300);
  await until("all are granted", async () => {
    await Promise.all(all.map((each) => each.runOnce()));
    await t.work(await t.dueEvents());
    return (await t.statuses()).DONE === 2_000;
  });
  const [sums] = await t.rows(
    `select (select sum(balance)::int from point_root) as balance, count(*)::int as grants from point_transactions`,
  );
  expect(sums).toEqual({ balance: 2_000, grants: 2_000 });
  expect(await t.audit()).toEqual([]);
});

test("a reservation that is refused is FAILED by the worker, and the others are granted", async () => {
  await using t = await setup();
  const onError = vi.fn();
  const scheduler = await grantingScheduler(t, { onError });
  await t.add("u_full", 2n ** 63n - 1n);
  await t.reserve({ user: "u_full" });
  await t.reserve({ user: "u_2" });
  await until("both have ended", async () => {
    await scheduler.runOnce();
    await t.work(await t.dueEvents());
    return (await t.rows(`select from point_reservations where status in ('PENDING', 'PROCESSING')`)).length === 0;
  });
  expect(await t.statuses()).toEqual({ DONE: 1, FAILED: 1 });
  expect(onError).not.toHaveBeenCalled();
  await t.reserve({ user: "u_3" });
  expect(await scheduler.runOnce()).toBe(1);
  expect(await t.balanceOf("u_3")).toBe(100n);
});

test("a reservation whose grant fails for an unknown reason is left to the worker and its attempts", async () => {
  await using t = await setup();
  const scheduler = await grantingScheduler(t);
  await t.db.query(`alter table point_lots add constraint broken check (user_id <> 'u_1')`);
  await t.reserve({ user: "u_1" });
  await t.reserve({ user: "u_2" });
  await expect(scheduler.runOnce()).rejects.toThrow("broken");
  expect(await t.statuses()).toEqual({ PENDING: 2 });
  expect(await scheduler.runOnce()).toBe(2);
  expect(await t.statuses()).toEqual({ PROCESSING: 2 });
  expect((await t.work(await t.dueEvents())).sort()).toEqual(["done", "retry"]);
  expect((await t.work(await t.dueEvents({ redelivered: true }))).sort()).toEqual(["dead", "done"]);
  expect(await t.statuses()).toEqual({ DONE: 1, FAILED: 1 });
});

test("a scheduler that grants dispatches again what has been PROCESSING for an hour", async () => {
  await using t = await setup();
  await t.reserve();
  const scheduler = await grantingScheduler(t, { intervalMs: 0 });
  await t.db.query(`update outbox_events set status = 'PUBLISHED', published_at = now()`);
  await t.db.query(`update point_reservations set sent_at = sent_at - interval '61 min'`);
  expect(await scheduler.runOnce()).toBe(1);
  expect(await t.rows(`select status from outbox_events`)).toEqual([{ status: "PENDING" }]);
});

const steps = ["lock due reservations", "point_root", "write point ledger", "mark granted", "commit"];
const cuts = (["request", "answer"] as const).flatMap((lose) => steps.map((step) => [step, lose] as const));

test.each(cuts)("after a crash at %s with its %s lost, each reservation is granted once", async (step, lose) => {
  await using t = await setup();
  await t.reserve();
  await t.reserve({ user: "u_2" });
  await using wire = await openFaultProxy(t.url);
  const dying = t.open({ url: wire.url });
  let isCut = false;
  void wire.cutNext(step, lose).then(() => {
    isCut = true;
  });
  await grantDueReservations(dying, 10).catch(() => {});
  expect(isCut).toBe(true);
  const restarted = t.process();
  const scheduler = await grantingScheduler(restarted);
  await until("both are granted", async () => {
    await scheduler.runOnce();
    await restarted.work(await t.dueEvents());
    return (await t.statuses()).DONE === 2;
  });
  expect([await t.balanceOf("u_1"), await t.balanceOf("u_2")]).toEqual([100n, 100n]);
  expect(await t.audit()).toEqual([]);
});
