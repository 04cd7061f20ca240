import { expect, test, vi } from "vitest";
import { selectReservation, selectReservations, selectReservedPoints } from "../store/reservations.ts";
import { nextMillisecond, setup } from "../testing.ts";

const hourAhead = () => new Date(Date.now() + 3_600_000).toISOString();

test("a repeated request returns the same bytes, also after the reservation is granted", async () => {
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

test("concurrent requests with one key in many processes make one reservation", async () => {
  await using t = await setup();
  const processes = [t.process(), t.process(), t.process()];
  const answers = await Promise.all(
    processes.flatMap((each) => Array.from({ length: 5 }, () => each.reserve({ key: "k1" }))),
  );
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
  expect(await t.statuses()).toEqual({ PENDING: 1 });
});

test("1,000 reservations take at most three statements, and each has its own result", async () => {
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

test("reservations are listed newest first, and their sum can exceed 2^63 - 1", async () => {
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
  expect(await selectReservedPoints(t.db, "unknown")).toBe(0n);
});

test("a reservation in the past is due at once, one in the year 9999 is not", async () => {
  await using t = await setup();
  const past = await t.reserve({ at: "0001-01-01T00:00:00Z", user: "early" });
  const late = await t.reserve({ at: "9999-12-31T23:59:59.999999Z", user: "late" });
  expect(late.text).toContain(`"execute_at":"9999-12-31T23:59:59.999999Z"`);
  expect(await t.scheduler().runOnce()).toBe(1);
  expect(await t.work(await t.dueEvents())).toEqual(["done"]);
  expect([await t.balanceOf("early"), await t.balanceOf("late")]).toEqual([100n, 0n]);
  expect((await selectReservation(t.db, past.id))?.status).toBe("DONE");
});
