import { expect, test, vi } from "vitest";
import { parseInstant } from "../schedules/instant.ts";
import { selectReservation, selectReservations, selectReservedPoints } from "../store/reservations.ts";
import { nextMillisecond, setup } from "../testing.ts";

const hourAhead = () => new Date(Date.now() + 3_600_000).toISOString();

test("the same request is one reservation and one answer to the byte, however late it is repeated", async () => {
  await using t = await setup();
  const wanted = { key: "k1", amount: 9_223_372_036_854_775_807n, at: "2020-01-15T10:00:00+09:00" };
  const first = await t.reserve(wanted);
  expect(first).toMatchObject({ status: 201, replayed: false });
  expect(first.text).toContain(`"point_amount":9223372036854775807`);
  expect(first.text).toContain(`"execute_at":"2020-01-15T01:00:00.000000Z"`);
  await t.scheduler().runOnce();
  await t.work(await t.dueEvents());
  expect(await t.statuses()).toEqual({ DONE: 1 });
  const again = await t.process().reserve(wanted);
  expect(again).toMatchObject({ status: 201, replayed: true, text: first.text });
  await expect(t.reserve({ ...wanted, amount: 1n })).rejects.toMatchObject({ code: "idempotency-conflict" });
  expect(await t.reserve({ ...wanted, caller: "game" })).toMatchObject({ replayed: false });
});

test("many processes that are asked the same at once make one reservation", async () => {
  await using t = await setup();
  const processes = [t.process(), t.process(), t.process()];
  const answers = await Promise.all(
    processes.flatMap((each) => Array.from({ length: 5 }, () => each.reserve({ key: "k1" }))),
  );
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
  expect(await t.statuses()).toEqual({ PENDING: 1 });
});

test("a bulk of 1,000 takes a few statements, and each is answered or refused by itself", async () => {
  await using t = await setup();
  await t.reserve({ key: "7", amount: 5n });
  const connect = vi.spyOn(t.db, "connect");
  const at = hourAhead();
  const ends = await Promise.allSettled(
    Array.from({ length: 1_000 }, (_, n) =>
      t.reserve({ key: String(n), user: `u_${n}`, at, ...(n === 3 && { expiresAt: "2021-01-01T00:00:00Z" }) }),
    ),
  );
  expect(connect.mock.calls.length).toBeLessThanOrEqual(3);
  expect(ends.flatMap((end, n) => (end.status === "rejected" ? [[n, end.reason.code]] : []))).toEqual([
    [3, "lot-end-in-the-past"],
    [7, "idempotency-conflict"],
  ]);
  expect(await t.statuses()).toEqual({ PENDING: 999 });
});

test("a user's reservations are listed, newest first, and what is to come is summed past what one balance can hold", async () => {
  await using t = await setup();
  const most = 2n ** 63n - 1n;
  const ids = [];
  for (const amount of [most, most, 1n]) {
    ids.unshift((await t.reserve({ amount, at: hourAhead() })).id);
    await nextMillisecond();
  }
  const first = await selectReservations(t.db, { userId: "u_1", limit: 2 });
  const rest = await selectReservations(t.db, { userId: "u_1", limit: 2, before: ids[1], statuses: ["PENDING"] });
  expect([...first, ...rest].map(({ id }) => id)).toEqual(ids);
  expect(first[1]?.point_amount).toBe(most);
  expect(await selectReservedPoints(t.db, "u_1")).toBe(2n * most + 1n);
  await t.cancel(ids[0] as string);
  expect(await selectReservedPoints(t.db, "u_1")).toBe(2n * most);
  expect(await selectReservedPoints(t.db, "nobody")).toBe(0n);
});

test.each<[string, string, string | undefined]>([
  ["an offset", "2026-01-15T10:00:00+09:00", "2026-01-15T01:00:00.000000Z"],
  ["an offset of three quarters of an hour", "2026-01-15T10:00:00+05:45", "2026-01-15T04:15:00.000000Z"],
  ["midnight in another year", "2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000000Z"],
  ["a leap day", "2028-02-29T23:59:59.5Z", "2028-02-29T23:59:59.500000Z"],
  ["no leap day", "2026-02-29T00:00:00Z", undefined],
  ["a month's end", "2026-04-30T23:00:00-02:00", "2026-05-01T01:00:00.000000Z"],
  ["no month's end", "2026-04-31T00:00:00Z", undefined],
  ["nanoseconds, which are never rounded down", "2026-01-01T00:00:00.123456001Z", "2026-01-01T00:00:00.123457Z"],
  ["the end of 9999", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"],
  ["past the end of 9999", "9999-12-31T23:59:59-00:01", undefined],
  ["past it by rounding", "9999-12-31T23:59:59.9999999Z", undefined],
  ["the year 1", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"],
  ["before the year 1", "0001-01-01T00:00:00+00:01", undefined],
  ["no offset", "2026-01-15T10:00:00", undefined],
  ["no time", "tomorrow", undefined],
])("of times: %s", async (_, text, expected) => {
  expect(parseInstant(text, "microsecond")).toBe(expected);
});

test("the first and the last time there is are kept as they are; the past is due at once, and 9999 is not", async () => {
  await using t = await setup();
  const past = await t.reserve({ at: "0001-01-01T00:00:00Z", user: "early" });
  const late = await t.reserve({ at: "9999-12-31T23:59:59.999999Z", user: "late" });
  expect(late.text).toContain(`"execute_at":"9999-12-31T23:59:59.999999Z"`);
  expect(await t.scheduler().runOnce()).toBe(1);
  expect(await t.work(await t.dueEvents())).toEqual(["done"]);
  expect([await t.balanceOf("early"), await t.balanceOf("late")]).toEqual([100n, 0n]);
  expect((await selectReservation(t.db, past.id))?.status).toBe("DONE");
});

test("only what is PENDING can be cancelled, and a repeated cancel is answered as the first was", async () => {
  await using t = await setup();
  const [first, second] = [await t.reserve({ at: hourAhead() }), await t.reserve()];
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

test("a cancel and the scheduler never both win", async () => {
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
