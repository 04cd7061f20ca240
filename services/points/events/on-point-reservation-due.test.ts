import { deadEvents, redriveDead } from "@todoke/kernel/inbox";
import { openWire, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { setup } from "../testing.ts";

const asked = { by: "aki", reason: "mended" };

test("granted at its time, once, with the lot's end and where it comes from; and the reservation is DONE", async () => {
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

test("when the database's clock goes back between hand-over and grant, the grant is booked at the reservation's time", async () => {
  await using t = await setup();
  const many = await Promise.all([t.reserve(), t.reserve(), t.reserve({ user: "u_2" })]);
  await t.scheduler().runOnce();
  // As by the clock of a server that was an hour ahead, and has failed since; each for a time of its own.
  for (const [place, { id }] of many.entries())
    await t.db.query(
      `update point_reservations set execute_at = now() + $2 * interval '20 min', sent_at = now() + interval '1 hour' where id = $1`,
      [id, place + 1],
    );
  await t.work(await t.dueEvents());
  expect(await t.statuses()).toEqual({ DONE: 3 });
  expect(await t.audit()).toEqual([]);
});

test("the same message ten times, in one batch, one after the other and in many processes at once, is one grant", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("nothing was due");
  const ten = Array.from({ length: 10 }, () => event);
  await Promise.all([t.work(ten), t.process().work(ten), ...ten.map((each) => t.process().work([each]))]);
  for (const each of ten) expect(await t.work([{ ...each, redelivered: true }])).toEqual(["done"]);
  expect(await t.balanceOf("u_1")).toBe(100n);
  // Also for a consumer that has forgotten all about it: the transaction itself is there once.
  await t.db.query(`delete from processed_events`);
  await t.db.query(`update point_reservations set status = 'PROCESSING', transaction_id = null`);
  expect(await t.work([event])).toEqual(["done"]);
  expect(await t.balanceOf("u_1")).toBe(100n);
  expect(await t.statuses()).toEqual({ DONE: 1 });
});

test("of a reservation that was cancelled, or that nobody has taken up, nothing is granted", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("nothing was due");
  for (const status of ["CANCELLED", "PENDING"]) {
    await t.db.query(`update point_reservations set status = $1, sent_at = null`, [status]);
    await t.db.query(`delete from processed_events`);
    expect(await t.work([event])).toEqual(["done"]);
    expect([await t.balanceOf("u_1"), await t.statuses()]).toEqual([0n, { [status]: 1 }]);
  }
});

test("what would overflow is FAILED with the reason and told once; redriven when there is room, it is granted", async () => {
  await using t = await setup();
  await t.add("u_1", 2n ** 63n - 1n);
  await t.reserve();
  await t.reserve({ user: "u_2" });
  await t.scheduler().runOnce();
  expect((await t.work(await t.dueEvents())).sort()).toEqual(["dead", "done"]);
  expect(await t.statuses()).toEqual({ DONE: 1, FAILED: 1 });
  const failures = () => t.rows(`select payload from outbox_events where event_type = 'PointReservationFailed'`);
  const [told] = await failures();
  expect(told?.payload).toMatchObject({ user_id: "u_1", point_amount: "100", reason: expect.stringMatching(/points/) });
  const [dead] = await deadEvents(t.db, { consumer: "points" });
  const redrive = async () => {
    await redriveDead(t.db, [dead?.dlqId ?? 0n], asked);
    return t.redrive();
  };
  expect(await redrive()).toMatchObject({ dead: 1 });
  await t.sub("u_1", 1_000n);
  expect(await redrive()).toMatchObject({ done: 1 });
  expect(await t.statuses()).toEqual({ DONE: 2 });
  expect(await t.balanceOf("u_1")).toBe(2n ** 63n - 1n - 900n);
  expect(await failures()).toHaveLength(1);
});

test("what fails again and again is FAILED together with its dead letter, and granted when it is redriven", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  await t.db.query(`alter table point_lots rename to point_lots_away`);
  expect(await t.work(await t.dueEvents())).toEqual(["retry"]);
  expect(await t.statuses()).toEqual({ PROCESSING: 1 });
  expect(await t.work(await t.dueEvents({ redelivered: true }))).toEqual(["dead"]);
  const [{ last_error }] = await t.rows(`select last_error from point_reservations where status = 'FAILED'`);
  expect(last_error).toMatch(/gave up after 2 attempts.*point_lots/);
  await t.db.query(`alter table point_lots_away rename to point_lots`);
  const [dead] = await deadEvents(t.db, { consumer: "points" });
  await redriveDead(t.db, [dead?.dlqId ?? 0n], asked);
  expect(await t.redrive()).toMatchObject({ done: 1 });
  expect(await t.statuses()).toEqual({ DONE: 1 });
  expect(await t.balanceOf("u_1")).toBe(100n);
});

test("an event that nobody can read ends the reservation that it is about", async () => {
  await using t = await setup();
  const { id } = await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("nothing was due");
  expect(await t.work([{ ...event, payload: new Uint8Array([255]) }])).toEqual(["dead"]);
  expect(await t.rows(`select id from point_reservations where status = 'FAILED'`)).toEqual([{ id }]);
});

test("what was cancelled is not granted, and what was granted does not fail any more, whatever is heard of it", async () => {
  await using t = await setup();
  await t.reserve();
  await t.scheduler().runOnce();
  const [event] = await t.dueEvents();
  if (!event) throw new Error("nothing was due");
  await t.db.query(`update point_reservations set status = 'CANCELLED', sent_at = null`);
  expect(await t.work([event])).toEqual(["done"]);
  expect(await t.balanceOf("u_1")).toBe(0n);
  await t.db.query(`delete from processed_events`);
  await t.db.query(`update point_reservations set status = 'PROCESSING', sent_at = now()`);
  expect(await t.work([event])).toEqual(["done"]);
  // A consumer that has forgotten it cannot read it any more.
  await t.db.query(`delete from processed_events`);
  expect(await t.work([{ ...event, payload: new Uint8Array([255]) }])).toEqual(["dead"]);
  expect(await t.statuses()).toEqual({ DONE: 1 });
  expect(await t.balanceOf("u_1")).toBe(100n);
});

/** Every statement of the scheduler and of the worker, by a word that only it has, in their order. */
const steps = {
  scheduler: ["lock due schedule", "points scheduler", "redispatch overdue", "dispatch due"],
  worker: ["inbox processed", "lock reservations", "mark granted", "point_root", "point_transactions"],
};
const cuts = (["request", "answer"] as const).flatMap((lose) =>
  [...steps.scheduler, ...steps.worker, "commit"].map((step) => [step, lose] as const),
);

test.each(cuts)(
  "a process that dies at %s, its %s lost, leaves nothing behind and nothing twice",
  async (step, lose) => {
    await using t = await setup();
    await t.reserve();
    await t.reserve({ user: "u_2" });
    await using wire = await openWire(t.url);
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
  },
);

test("grants, refusals and redrives need no connection but that of their own transaction", async () => {
  await using t = await setup();
  await t.add("u_1", 2n ** 63n - 1n);
  await t.reserve();
  await t.reserve({ user: "u_2" });
  await t.scheduler().runOnce();
  const { work, redrive } = t.process(t.open({ poolMax: 1, connectTimeoutMs: 30_000 }));
  expect((await work(await t.dueEvents())).sort()).toEqual(["dead", "done"]);
  const [dead] = await deadEvents(t.db, { consumer: "points" });
  await redriveDead(t.db, [dead?.dlqId ?? 0n], asked);
  expect(await redrive()).toMatchObject({ dead: 1 });
  expect(await t.statuses()).toEqual({ DONE: 1, FAILED: 1 });
});
