/** A recurring grant for many users, whose scheduler is killed between two batches of them and within one: everybody once. */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openPoints } from "./points.ts";

// A batch is a thousand.
const [users, callMax] = [1_200, 1_000];
const user = (n: number) => `s_${String(n).padStart(4, "0")}`;

test("a recurring grant goes on where its dead scheduler was, and everybody gets it once", async () => {
  await using town = await openPoints({ kind: "postgres", processes: [["api", "relay", "maintenance"], ["worker"]] });
  const { client, db } = town;
  const about = { name: "new year", cron: "0 0 1 1 *", time_zone: "Asia/Tokyo", point_amount: 3, catch_up: "all" };
  const { schedule_id } = await client.told<{ schedule_id: string }>({
    method: "POST",
    path: "/v1/points/schedules",
    body: about,
    key: "new-year",
  });
  const path = `/v1/points/schedules/${schedule_id}`;
  for (let from = 0; from < users; from += callMax) {
    const user_ids = Array.from({ length: Math.min(callMax, users - from) }, (_, n) => user(from + n));
    await client.told({ method: "PUT", path: `${path}/users`, body: { user_ids } });
  }
  await db.query(`update point_schedules set next_run_at = date_trunc('minute', now()) where schedule_id = $1`, [
    schedule_id,
  ]);
  const booked = async () =>
    (await db.query(`select count(*)::int as n from point_reservations where schedule_id = $1`, [schedule_id])).rows[0]
      .n;

  await town.dieAt({ name: "occurrence.written", hit: 1, role: "scheduler" });
  expect(await booked()).toBe(1_000);
  await town.dieAt({ name: "occurrence.writing", hit: 1, role: "scheduler" });
  expect(await booked()).toBe(1_000);
  await town.start(["scheduler"]);
  await town.start(["scheduler"]);
  const isOver = async () =>
    Date.parse((await client.told<{ next_run_at: string }>({ method: "GET", path })).next_run_at) > Date.now();
  await until("everybody has a reservation", isOver);

  expect(await booked()).toBe(users);
  expect(await town.faults()).toEqual([]);
  const granted = await db.query(`select from point_root where user_id like 's\\_%' and balance = 3`);
  expect(granted.rowCount).toBe(users);
  for (let n = 0; n < users; n += 100) expect(await client.confirm(user(n))).toMatchObject({ balance: 3, pending: 0 });
});
