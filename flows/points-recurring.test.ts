/** A recurring grant for many users whose scheduler is killed between two batches and within one. */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openPoints } from "./points.ts";

// A batch has 1,000 users.
const [users, callMax] = [1_200, 1_000];
const user = (n: number) => `s_${String(n).padStart(4, "0")}`;

test("a recurring grant resumes after a scheduler crash, and every user gets it once", async () => {
  await using setup = await openPoints({ kind: "postgres", processes: [["api", "relay", "maintenance"], ["worker"]] });
  const { client, db } = setup;
  const schedule = { name: "new year", cron: "0 0 1 1 *", time_zone: "Asia/Tokyo", point_amount: 3, catch_up: "all" };
  const { schedule_id } = await client.request<{ schedule_id: string }>({
    method: "POST",
    path: "/v1/points/schedules",
    body: schedule,
    key: "new-year",
  });
  const path = `/v1/points/schedules/${schedule_id}`;
  for (let from = 0; from < users; from += callMax) {
    const user_ids = Array.from({ length: Math.min(callMax, users - from) }, (_, n) => user(from + n));
    await client.request({ method: "PUT", path: `${path}/users`, body: { user_ids } });
  }
  await db.query(`update point_schedules set next_run_at = date_trunc('minute', now()) where schedule_id = $1`, [
    schedule_id,
  ]);
  const reservationCount = async () =>
    (await db.query(`select count(*)::int as n from point_reservations where schedule_id = $1`, [schedule_id])).rows[0]
      .n;

  await setup.killAt({ name: "occurrence.written", hit: 1, role: "scheduler" });
  expect(await reservationCount()).toBe(1_000);
  await setup.killAt({ name: "occurrence.writing", hit: 1, role: "scheduler" });
  expect(await reservationCount()).toBe(1_000);
  await setup.start(["scheduler"]);
  await setup.start(["scheduler"]);
  const hasRun = async () =>
    Date.parse((await client.request<{ next_run_at: string }>({ method: "GET", path })).next_run_at) > Date.now();
  await until("every user has a reservation", hasRun);

  expect(await reservationCount()).toBe(users);
  expect(await setup.violations()).toEqual([]);
  const granted = await db.query(`select from point_root where user_id like 's\\_%' and balance = 3`);
  expect(granted.rowCount).toBe(users);
  for (let n = 0; n < users; n += 100) expect(await client.confirm(user(n))).toMatchObject({ balance: 3, pending: 0 });
});
