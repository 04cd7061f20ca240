import { expect, test } from "vitest";
import { inSeconds, setup } from "../testing.ts";

test("only a PENDING reservation can be cancelled; a repeated cancel is replayed", async () => {
  await using t = await setup();
  const [first, second] = [await t.reserve({ at: inSeconds(3_600) }), await t.reserve()];
  const cancelled = await t.cancel(first.id, "c1");
  expect(JSON.parse(cancelled.body.toString())).toEqual({ id: first.id, status: "CANCELLED" });
  expect(await t.cancel(first.id, "c1")).toMatchObject({ replayed: true, body: cancelled.body });
  const notPending = { code: "reservation-not-pending", status: 409 };
  await expect(t.cancel(first.id)).rejects.toMatchObject(notPending);
  await t.scheduler().runOnce();
  await expect(t.cancel(second.id)).rejects.toMatchObject(notPending);
  await t.work(await t.dueEvents());
  await expect(t.cancel(second.id)).rejects.toMatchObject(notPending);
  await expect(t.cancel("00000000-0000-7000-8000-000000000001")).rejects.toMatchObject({ status: 404 });
  expect(await t.statuses()).toEqual({ CANCELLED: 1, DONE: 1 });
});

test("a reservation is either cancelled or dispatched, never both", async () => {
  await using t = await setup();
  const ids = await Promise.all(Array.from({ length: 60 }, async () => (await t.reserve()).id));
  const other = t.process();
  const [ends] = await Promise.all([
    Promise.allSettled(ids.map((id) => other.cancel(id))),
    t.scheduler({ batchMax: 5 }).runOnce(),
  ]);
  while ((await t.scheduler().runOnce()) > 0);
  const cancelled = new Set(ids.filter((_, n) => ends[n]?.status === "fulfilled"));
  const sent = new Set((await t.dueEvents()).map(({ eventId }) => eventId));
  expect(cancelled.size + sent.size).toBe(ids.length);
  expect(cancelled.intersection(sent)).toEqual(new Set());
});
