import { expect, test } from "vitest";
import { nextMillisecond } from "../testing.ts";
import { most, setup } from "./testing.ts";

const daily = { name: "daily-bonus", cron: "0 9 * * *", time_zone: "Asia/Tokyo", point_amount: 10 };
const path = "/v1/points/schedules";

async function scheduled(more: object = {}) {
  const t = await setup();
  const created = await t.post(path, { key: "k", body: { ...daily, ...more } });
  const one = `${path}/${created.json.schedule_id}`;
  return {
    ...t,
    created,
    one,
    show: async () => (await t.get(one)).json,
    act: (name: "end" | "pause" | "resume") => t.post(`${one}/${name}`),
    users: (method: "del" | "put", user_ids: unknown) => t[method](`${one}/users`, { body: { user_ids } }),
    makeDue: () => t.db.query(`update point_schedules set next_run_at = date_trunc('minute', now())`),
  };
}

test("a schedule is created once per key and returns its first occurrence", async () => {
  await using t = await scheduled({ point_amount: most, lot_ttl_seconds: 86_400, reason: "bonus" });
  expect([t.created.status, t.created.json]).toMatchObject([
    201,
    {
      ...daily,
      point_amount: Number(most),
      lot_ttl_seconds: 86_400,
      reason: "bonus",
      catch_up: "all",
      status: "ACTIVE",
    },
  ]);
  expect(t.created.text).toContain(`"point_amount":${most},`);
  const { next_run_at, created_at } = t.created.json;
  expect(next_run_at).toMatch(/T00:00:00\.000000Z$/); // nine in the morning in Tokyo
  const ahead = Date.parse(next_run_at) - Date.parse(created_at);
  expect(ahead > 0 && ahead <= 86_400_000).toBe(true);
  expect(await t.show()).toEqual(t.created.json);
  const body = { ...daily, point_amount: most, lot_ttl_seconds: 86_400, reason: "bonus" };
  const again = await t.post(path, { key: "k", body });
  expect([again.isReplay, again.text]).toEqual([true, t.created.text]);
  const taken = await t.post(path, { key: "k2", body: daily });
  expect([taken.status, taken.json.code]).toEqual([409, "schedule-name-taken"]);
});

test("an invalid schedule is refused with the name of the field", async () => {
  await using t = await setup();
  const cases = [
    [{ cron: "every day at nine" }, 422, "body.cron"],
    [{ cron: "0 25 * * *" }, 422, "body.cron"],
    [{ cron: "0 0 30 2 *" }, 422, "body.cron"],
    [{ time_zone: "Mars/Olympus" }, 422, "body.time_zone"],
    [{ time_zone: "+09:00" }, 422, "body.time_zone"],
    [{ catch_up: "some" }, 400, "body.catch_up"],
    [{ lot_ttl_seconds: 0 }, 400, "body.lot_ttl_seconds"],
    [{ point_amount: "9223372036854775808" }, 400, "body.point_amount"],
    [{ name: "" }, 400, "body.name"],
    [{ user_ids: ["u_1"] }, 400, "body.user_ids"],
  ] as const;
  for (const [more, status, field] of cases) {
    const answer = await t.post(path, { key: "k", body: { ...daily, ...more } });
    expect([more, answer.status, answer.json.errors[0].field]).toEqual([more, status, field]);
  }
  expect((await t.post(path, { body: daily })).json.code).toBe("idempotency-key-missing");
  expect((await t.get(path)).json).toEqual({ schedules: [] });
});

test("users are added and removed idempotently and listed page by page", async () => {
  await using t = await scheduled();
  expect((await t.users("put", ["c", "a", "b", "a"])).json).toEqual({
    schedule_id: t.created.json.schedule_id,
    changed: 3,
  });
  expect((await t.users("put", ["a", "d"])).json.changed).toBe(1);
  expect((await t.users("del", ["d", "x"])).json.changed).toBe(1);
  expect((await t.users("del", ["d"])).json.changed).toBe(0);
  const first = (await t.get(`${t.one}/users?limit=2`)).json;
  expect(first.user_ids).toEqual(["a", "b"]);
  expect((await t.get(`${t.one}/users?limit=2&cursor=${first.next_cursor}`)).json.user_ids).toEqual(["c"]);
  const many = Array.from({ length: 1_000 }, (_, i) => `${i}`.padEnd(128, "届"));
  expect((await t.users("put", many)).json.changed).toBe(1_000);
  for (const wrong of [[], [...many, "one more"], [""], ["届".repeat(129)], "a"])
    expect((await t.users("put", wrong)).json.errors[0].field).toMatch(/^body\.user_ids/);
});

test("an occurrence makes a reservation per user, unless the schedule is paused or ended", async () => {
  // On leap days, so that it is due only when the test says so.
  await using t = await scheduled({ cron: "0 0 29 2 *", lot_ttl_seconds: 3_600 });
  await t.users("put", ["u_1", "u_2"]);
  await t.makeDue();
  expect((await t.act("pause")).json.status).toBe("PAUSED");
  expect((await t.act("pause")).status).toBe(200);
  expect(await t.scheduler().runOnce()).toBe(0);
  expect((await t.act("resume")).json.status).toBe("ACTIVE");
  expect(await t.scheduler().runOnce()).toBe(2);
  await t.work(await t.dueEvents());
  const { reservations } = (await t.get("/v1/points/users/u_2/reservations")).json;
  expect(reservations).toMatchObject([{ status: "DONE", point_amount: 10, schedule_id: t.created.json.schedule_id }]);
  expect((await t.get("/v1/points/users/u_2/expiring")).json.lots.length).toBe(1);
  await t.makeDue();
  expect((await t.act("end")).json.status).toBe("ENDED");
  expect((await t.act("end")).status).toBe(200);
  expect(await t.scheduler().runOnce()).toBe(0);
  for (const answer of [await t.act("resume"), await t.act("pause"), await t.users("put", ["u_3"])])
    expect([answer.status, answer.json.code]).toEqual([409, "schedule-ended"]);
  expect((await t.users("del", ["u_1"])).json.changed).toBe(1);
});

test("schedules are listed newest first, also by status; an unknown one is 404", async () => {
  await using t = await scheduled();
  await nextMillisecond();
  const { schedule_id } = (await t.post(path, { key: "k2", body: { ...daily, name: "other" } })).json;
  await t.act("end");
  const first = (await t.get(`${path}?limit=1`)).json;
  expect(first.schedules).toMatchObject([{ schedule_id, name: "other" }]);
  const second = (await t.get(`${path}?limit=1&cursor=${first.next_cursor}`)).json;
  expect(second.schedules).toMatchObject([{ name: "daily-bonus", status: "ENDED" }]);
  expect(second).not.toHaveProperty("next_cursor");
  expect((await t.get(`${path}?status=ACTIVE`)).json.schedules).toMatchObject([{ schedule_id }]);
  const unknown = `${path}/0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f`;
  const answers = [
    await t.get(unknown),
    await t.post(`${unknown}/pause`),
    await t.get(`${unknown}/users`),
    await t.put(`${unknown}/users`, { body: { user_ids: ["a"] } }),
    await t.del(`${unknown}/users`, { body: { user_ids: ["a"] } }),
  ];
  for (const answer of answers) expect([answer.status, answer.json.code]).toEqual([404, "schedule-not-found"]);
});
