import { randomUUID } from "node:crypto";
import { openFaultProxy, until } from "@todoke/kernel/testing";
import { expect, test, vi } from "vitest";
import type { CatchUp } from "../schedules/catch-up.ts";
import {
  deleteScheduleUsers,
  insertSchedule,
  insertScheduleUsers,
  type NewSchedule,
  updateScheduleStatus,
} from "../store/change-schedules.ts";
import { nextMillisecond, rethrow as onError, setup as setupService } from "../testing.ts";
import { runDueSchedule } from "./run-due-schedule.ts";

async function setup() {
  const t = await setupService();
  return {
    ...t,
    /** A daily schedule, first due `daysAgo`. Its hour is that of twelve hours ago, so that it is not due during a test. */
    async schedule({
      users = 1,
      daysAgo = 0,
      ...more
    }: Partial<NewSchedule> & { users?: number; daysAgo?: number } = {}) {
      const scheduleId = randomUUID();
      const [{ first, cron }] = await t.rows(
        `select to_char(at - $1 * interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SSZ') as first, to_char(at, '0 FMHH24 * * *') as cron
           from date_trunc('hour', now() at time zone 'utc' - interval '12 hours') at`,
        [daysAgo],
      );
      const defaults = { cron, timeZone: "UTC", amount: 10n, catchUp: "all" as const, nextRunAt: first };
      await insertSchedule(t.db, { scheduleId, name: scheduleId, ...defaults, ...more });
      const ids = Array.from({ length: users }, (_, n) => `u_${n + 1}`);
      await insertScheduleUsers(t.db, scheduleId, ids);
      return scheduleId;
    },
    occurrences: () =>
      t.rows(`select occurrence_at, count(*)::int as users, count(distinct user_id)::int as distinct_users
                from point_reservations group by 1 order by 1`),
    row: async (scheduleId: string) =>
      (
        await t.rows(
          `select status, run_cursor, next_run_at > now() as is_ahead from point_schedules where schedule_id = $1`,
          [scheduleId],
        )
      )[0],
  };
}

test("an occurrence gives each user one reservation, also with concurrent processes", async () => {
  await using t = await setup();
  const id = await t.schedule({ users: 250 });
  const processes = [t.open(), t.open(), t.open()];
  await until("the occurrence is complete", async () => {
    await Promise.all(processes.map((db) => runDueSchedule(db, { onError, batchMax: 40 })));
    return (await t.row(id)).is_ahead;
  });
  expect(await t.occurrences()).toMatchObject([{ users: 250, distinct_users: 250 }]);
  expect(await t.row(id)).toMatchObject({ status: "ACTIVE", run_cursor: null });
});

const cuts = (["request", "answer"] as const).flatMap((lose) =>
  ["lock due schedule", "insert occurrence", "update schedule progress", "commit"].map((step) => [step, lose] as const),
);

test.each(cuts)(
  "after a crash at %s with its %s lost, another process completes the occurrence",
  async (step, lose) => {
    await using t = await setup();
    const id = await t.schedule({ users: 25 });
    await runDueSchedule(t.db, { onError, batchMax: 10 });
    await using wire = await openFaultProxy(t.url);
    const dying = t.open({ url: wire.url });
    const cut = wire.cutNext(step, lose);
    await expect(runDueSchedule(dying, { onError, batchMax: 10 })).rejects.toThrow();
    await cut;
    await until("the occurrence is complete", async () => {
      await runDueSchedule(t.db, { onError, batchMax: 10 });
      return (await t.row(id)).is_ahead;
    });
    expect(await t.occurrences()).toMatchObject([{ users: 25, distinct_users: 25 }]);
  },
);

test.each<[CatchUp, number]>([
  ["all", 4],
  ["latest", 1],
  ["none", 0],
])("after three days of downtime, catch_up %s gives each user %i grants", async (catchUp, grants) => {
  await using t = await setup();
  // Daily, last due an hour ago, so the latest occurrence was missed by more than five minutes.
  const [{ first, now }] = await t.rows(
    `select to_char((now() - interval '3 days 1 hour') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:00Z') as first,
            extract(minute from (now() - interval '3 days 1 hour') at time zone 'utc') || ' ' ||
            extract(hour from (now() - interval '3 days 1 hour') at time zone 'utc') || ' * * *' as now`,
  );
  const id = await t.schedule({ users: 3, catchUp, cron: now, nextRunAt: first, lotTtlSeconds: 40 * 86_400 });
  await until("all are granted", async () => {
    await t.scheduler().runOnce();
    await t.work(await t.dueEvents());
    return (await t.row(id)).is_ahead;
  });
  await t.work(await t.dueEvents());
  for (const user of ["u_1", "u_2", "u_3"]) expect(await t.balanceOf(user)).toBe(10n * BigInt(grants));
  expect((await t.occurrences()).map(({ users }) => users)).toEqual(Array(grants).fill(3));
});

test("changes of users count from the next occurrence; a paused schedule has none", async () => {
  await using t = await setup();
  const id = await t.schedule({ users: 2, daysAgo: 2 });
  await runDueSchedule(t.db, { onError });
  await insertScheduleUsers(t.db, id, ["u_2", "u_3"]);
  await deleteScheduleUsers(t.db, id, ["u_1"]);
  await nextMillisecond();
  await runDueSchedule(t.db, { onError });
  await updateScheduleStatus(t.db, id, "PAUSED");
  expect(await runDueSchedule(t.db, { onError })).toBe(false);
  expect((await t.occurrences()).map(({ users }) => users)).toEqual([2, 2]);
  expect(await t.rows(`select user_id from point_reservations where user_id in ('u_1', 'u_3') order by id`)).toEqual([
    { user_id: "u_1" },
    { user_id: "u_3" },
  ]);
  expect(await updateScheduleStatus(t.db, id, "ENDED")).toBe(true);
  expect(await updateScheduleStatus(t.db, id, "ACTIVE")).toBe(false);
});

test("a schedule that cannot be parsed is paused and reported, and blocks no other", async () => {
  await using t = await setup();
  const broken = await t.schedule({ cron: "never", daysAgo: 1 });
  await t.schedule();
  const onError = vi.fn();
  await t.scheduler({ onError }).runOnce();
  expect(String(onError.mock.calls[0]?.[0])).toContain(broken);
  expect(await t.row(broken)).toMatchObject({ status: "PAUSED" });
  expect(await t.statuses()).toEqual({ PROCESSING: 1 });
});

test("a schedule with a year to catch up does not delay the others", async () => {
  await using t = await setup();
  const behind = await t.schedule({ daysAgo: 365 });
  const [{ minute, cron }] = await t.rows(
    `select to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:00Z') as minute,
            to_char(now() at time zone 'utc', 'FMMI FMHH24 * * *') as cron`,
  );
  const inTime = await t.schedule({ cron, nextRunAt: minute, catchUp: "none" });
  for (let steps = 0; steps < 2; steps++) {
    await runDueSchedule(t.db, { onError });
    await nextMillisecond();
  }
  const [reservations] = await t.rows(`select array_agg(schedule_id order by id) as by from point_reservations`);
  expect(reservations.by).toEqual([behind, inTime]);
});

test("a schedule that fails is reported and blocks neither schedules nor reservations", async () => {
  await using t = await setup();
  await t.db.query(`alter table point_reservations add constraint no_poison check (reason <> 'poison')`);
  const poison = await t.schedule({ reason: "poison", daysAgo: 3 });
  const sound = await t.schedule({ daysAgo: 1 });
  await t.reserve();
  const onError = vi.fn();
  const one = t.scheduler({ intervalMs: 600_000, onError });
  await one.runOnce();
  await one.runOnce();
  expect(onError.mock.calls.map(([error]) => String(error))).toEqual([expect.stringContaining(poison)]);
  expect(await t.statuses()).toEqual({ PROCESSING: 3 });
  expect(await t.row(sound)).toMatchObject({ is_ahead: true });
  expect(await t.row(poison)).toMatchObject({ status: "ACTIVE", is_ahead: false });
});

test("without lot_ttl_seconds the points never expire", async () => {
  await using t = await setup();
  await t.schedule({});
  await runDueSchedule(t.db, { onError });
  const rows = await t.rows(`select lot_expires_at from point_reservations`);
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) expect(row).toEqual({ lot_expires_at: null });
});

test("a lot_ttl_seconds beyond the year 9999 ends with that year", async () => {
  await using t = await setup();
  await t.schedule({ lotTtlSeconds: Number.MAX_SAFE_INTEGER });
  await runDueSchedule(t.db, { onError });
  const [row] = await t.rows(`select lot_expires_at = '9999-12-31 23:59:59.999+00' as ends from point_reservations`);
  expect(row).toEqual({ ends: true });
});
