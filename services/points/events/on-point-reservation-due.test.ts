import { inboxDeadLetters } from "@todoke/kernel/inbox";
import { openFaultProxy, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { setup } from "../testing.ts";

const attribution = { by: "aki", reason: "fixed" };
const deadLetters = inboxDeadLetters("points");

test("a due reservation is granted with its lot expiry and source, and is DONE", async () => {
  await using t = await setup();
  const { id } = await t.reserve({ user: "u_9", amount: 70n, expiresAt: "9999-12-31T23:59:59.999Z" });
  expect(await t.scheduler().runOnce()).toBe(1);
  expect(await t.statuses()).toEqual({ PROCESSING: 1 });
  expect(await t.work(await t.dueEvents())).toEqual(["done"]);
  const [row] = await t.rows(`select r.status, x.idempotency_key, x.kind, x.point_amount, x.source, x.source_id
                                from point_reservations r join point_transactions x on x.id = r.transaction_id`);
  expect(row).toEqual({
    status: "DONE",
    idempotency_key: `reservation:${id}`,
    kind: "GRANT",
    point_amount: 70n,
    source: "reservation",
    source_id: id,
  });
  expect((await t.rows(`select expires_at < 'infinity' as ends from point_lots`))[0]).toEqual({ ends: true });
  const [{ event_type }] = await t.rows(`select event_type from outbox_events where subject = 'points.events'`);
  expect(event_type).toBe("PointsGranted");
});

test("a grant is not posted before its reservation's time if the clock steps back", async () => {
  await using t = await setup();
  const many = await Promise.all([t.reserve(), t.reserve(), t.reserve({ user: "u_2" })]);
  await t.scheduler().runOnce();
  // As dispatched by the clock of a failed server that was an hour ahead.
  for (const [index, { id }] of many.entries())
    await t.db.query(
      `update point_reservations set execute_at = now() + $2 * interval '20 min', sent_at = now() + interval '1 hour' where id = $1`,
      [id, index + 1],
    );
  await t.work(await t.dueEvents());
  expect(await t.statuses()).toEqual({ DONE: 3 });
  expect(await t.audit()).toEqual([]);
});

test("an event that is delivered many times, also concurrently, grants once", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("no event");
  const ten = Array.from({ length: 10 }, () => event);
  await Promise.all([t.work(ten), t.process().work(ten), ...ten.map((each) => t.process().work([each]))]);
  for (const each of ten) expect(await t.work([{ ...each, redelivered: true }])).toEqual(["done"]);
  expect(await t.balanceOf("u_1")).toBe(100n);
  // Without the inbox's memory, the key of the transaction still prevents a second grant.
  await t.db.query(`delete from processed_events`);
  await t.db.query(`update point_reservations set status = 'PROCESSING', transaction_id = null`);
  expect(await t.work([event])).toEqual(["done"]);
  expect(await t.balanceOf("u_1")).toBe(100n);
  expect(await t.statuses()).toEqual({ DONE: 1 });
});

test("a CANCELLED or PENDING reservation is not granted", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("no event");
  for (const status of ["CANCELLED", "PENDING"]) {
    await t.db.query(`update point_reservations set status = $1, sent_at = null`, [status]);
    await t.db.query(`delete from processed_events`);
    expect(await t.work([event])).toEqual(["done"]);
    expect([await t.balanceOf("u_1"), await t.statuses()]).toEqual([0n, { [status]: 1 }]);
  }
});

test("a reservation that would overflow is FAILED, and granted by a redrive once there is room", async () => {
  await using t = await setup();
  await t.add("u_1", 2n ** 63n - 1n);
  await t.reserve();
  await t.reserve({ user: "u_2" });
  await t.scheduler().runOnce();
  expect((await t.work(await t.dueEvents())).sort()).toEqual(["dead", "done"]);
  expect(await t.statuses()).toEqual({ DONE: 1, FAILED: 1 });
  const failures = () => t.rows(`select payload from outbox_events where event_type = 'PointReservationFailed'`);
  const [failure] = await failures();
  expect(failure?.payload).toMatchObject({
    user_id: "u_1",
    point_amount: "100",
    reason: expect.stringMatching(/points/),
  });
  const [dead] = await deadLetters.list(t.db, { limit: 10 });
  const redrive = async () => {
    await deadLetters.redrive(t.db, [dead?.id ?? "0"], attribution);
    return t.redrive();
  };
  expect(await redrive()).toMatchObject({ dead: 1 });
  await t.sub("u_1", 1_000n);
  expect(await redrive()).toMatchObject({ done: 1 });
  expect(await t.statuses()).toEqual({ DONE: 2 });
  expect(await t.balanceOf("u_1")).toBe(2n ** 63n - 1n - 900n);
  expect(await failures()).toHaveLength(1);
});

test("a reservation is FAILED after the last attempt, and granted by a redrive", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  await t.db.query(`alter table point_lots rename to point_lots_hidden`);
  expect(await t.work(await t.dueEvents())).toEqual(["retry"]);
  expect(await t.statuses()).toEqual({ PROCESSING: 1 });
  expect(await t.work(await t.dueEvents({ redelivered: true }))).toEqual(["dead"]);
  const [{ last_error }] = await t.rows(`select last_error from point_reservations where status = 'FAILED'`);
  expect(last_error).toMatch(/failed after 2 attempts.*point_lots/);
  await t.db.query(`alter table point_lots_hidden rename to point_lots`);
  const [dead] = await deadLetters.list(t.db, { limit: 10 });
  await deadLetters.redrive(t.db, [dead?.id ?? "0"], attribution);
  expect(await t.redrive()).toMatchObject({ done: 1 });
  expect(await t.statuses()).toEqual({ DONE: 1 });
  expect(await t.balanceOf("u_1")).toBe(100n);
});

test("an event that cannot be decoded makes its reservation FAILED", async () => {
  await using t = await setup();
  const { id } = await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("no event");
  expect(await t.work([{ ...event, payload: new Uint8Array([255]) }])).toEqual(["dead"]);
  expect(await t.rows(`select id from point_reservations where status = 'FAILED'`)).toEqual([{ id }]);
});

test("a DONE reservation stays DONE when its event is dead-lettered later", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("no event");
  await t.db.query(`update point_reservations set status = 'CANCELLED', sent_at = null`);
  expect(await t.work([event])).toEqual(["done"]);
  expect(await t.balanceOf("u_1")).toBe(0n);
  await t.db.query(`delete from processed_events`);
  await t.db.query(`update point_reservations set status = 'PROCESSING', sent_at = now()`);
  expect(await t.work([event])).toEqual(["done"]);
  // Delivered again without the inbox's memory, and unreadable.
  await t.db.query(`delete from processed_events`);
  expect(await t.work([{ ...event, payload: new Uint8Array([255]) }])).toEqual(["dead"]);
  expect(await t.statuses()).toEqual({ DONE: 1 });
  expect(await t.balanceOf("u_1")).toBe(100n);
});

/** Text that identifies each statement of the scheduler and the worker, in their order. */
const steps = {
  scheduler: ["points scheduler", "redispatch overdue", "dispatch due", "next due"],
  worker: ["inbox processed", "lock reservations", "mark granted", "point_root", "point_transactions"],
};
const cuts = (["request", "answer"] as const).flatMap((lose) =>
  [...steps.scheduler, ...steps.worker, "commit"].map((step) => [step, lose] as const),
);

test.each(cuts)("after a crash at %s with its %s lost, each reservation is granted once", async (step, lose) => {
  await using t = await setup();
  await t.reserve();
  await t.reserve({ user: "u_2" });
  await using wire = await openFaultProxy(t.url);
  const dying = t.process(t.open({ url: wire.url }));
  let isCut = false;
  void wire.cutNext(step, lose).then(() => {
    isCut = true;
  });
  await dying
    .scheduler()
    .runOnce()
    .catch(() => {});
  await dying.work(await t.dueEvents()).catch(() => {});
  expect(isCut).toBe(true);
  const restarted = t.process();
  await until("both are granted", async () => {
    await restarted.scheduler().runOnce();
    await restarted.work(await t.dueEvents({ redelivered: true }));
    return (await t.statuses()).DONE === 2;
  });
  expect([await t.balanceOf("u_1"), await t.balanceOf("u_2")]).toEqual([100n, 100n]);
  expect(await t.dueEvents()).toHaveLength(2);
});

test("grants, refusals and redrives work with a pool of one connection", async () => {
  await using t = await setup();
  await t.add("u_1", 2n ** 63n - 1n);
  await t.reserve();
  await t.reserve({ user: "u_2" });
  await t.scheduler().runOnce();
  const { work, redrive } = t.process(t.open({ poolMax: 1, connectTimeoutMs: 30_000 }));
  expect((await work(await t.dueEvents())).sort()).toEqual(["dead", "done"]);
  const [dead] = await deadLetters.list(t.db, { limit: 10 });
  await deadLetters.redrive(t.db, [dead?.id ?? "0"], attribution);
  expect(await redrive()).toMatchObject({ dead: 1 });
  expect(await t.statuses()).toEqual({ DONE: 1, FAILED: 1 });
});
