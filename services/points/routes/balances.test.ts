import { expect, test } from "vitest";
import { inSeconds } from "../testing.ts";
import { setup } from "./testing.ts";

const day = 86_400;

test("a balance is returned for now or for a past time", async () => {
  await using t = await setup();
  const add = (key: string, point_amount: number, more: object = {}) =>
    t.put("/point/add", { key, body: { user_id: "u_1", point_amount, ...more } });
  const { created_at } = (await add("k1", 100)).json;
  await add("k2", 1, { expires_at: inSeconds(600) });
  const balance = async (query = "") => (await t.get(`/v1/points/users/u_1/balance${query}`)).json;
  expect(await balance()).toEqual({
    user_id: "u_1",
    balance: 101,
    held: 0,
    pending: 0,
    version: 2,
    as_of: expect.any(String),
  });
  const before = new Date(Date.parse(created_at) - 1).toISOString();
  expect(await balance(`?at=${before}`)).toEqual({ user_id: "u_1", balance: 0, held: 0, version: 0, as_of: before });
  expect(await balance("?at=0001-01-01T00:00:00Z")).toMatchObject({ balance: 0 });
  expect(await balance("?at=9999-12-31T23:59:59Z")).toMatchObject({ balance: 101 });
  await t.age("1 hour");
  for (const query of ["", "?at=9999-12-31T23:59:59Z"])
    expect(await balance(query)).toMatchObject({ balance: 100, version: 2 });
  expect((await balance("?at=now")).errors[0].field).toBe("query.at");
  expect(await t.get("/v1/points/users/unknown/balance").then(({ json }) => json)).toMatchObject({ balance: 0 });
  for (const query of ["", "?user_id=", `?user_id=${"u".repeat(129)}`])
    expect((await t.get(`/point/confirm${query}`)).json.errors[0].field).toBe("query.user_id");
});

test("expiring lots are listed by expiry, page by page, within 30 days by default", async () => {
  await using t = await setup();
  const ends = [29, 2, 1, 31, 3].map((days) => inSeconds(days * day));
  for (const [i, expires_at] of ends.entries())
    await t.put("/point/add", { key: `k${i}`, body: { user_id: "u_1", point_amount: i + 1, expires_at } });
  // Two lots with the same expiry.
  await t.put("/point/add", { key: "k", body: { user_id: "u_1", point_amount: 9, expires_at: ends[2] } });
  await t.put("/point/add", { key: "never", body: { user_id: "u_1", point_amount: 50 } });
  const seen: number[] = [];
  let query = "?limit=1";
  for (let pages = 0; pages < 9; pages++) {
    const { lots, next_cursor } = (await t.get(`/v1/points/users/u_1/expiring${query}`)).json;
    seen.push(...lots.map((lot: { remaining: number }) => lot.remaining));
    if (!next_cursor) break;
    query = `?limit=1&cursor=${next_cursor}`;
  }
  expect(seen).toEqual([3, 9, 2, 5, 1]);
  const within = async (days: number) => (await t.get(`/v1/points/users/u_1/expiring?within_days=${days}`)).json;
  expect((await within(3_650)).lots.length).toBe(6);
  for (const days of [0, 3_651]) expect((await within(days)).errors[0].field).toBe("query.within_days");
  for (const text of ["2026-02-30T00:00:00.000Z 1", "x", "2026-02-28T00:00:00.000Z 9999999999999999999"]) {
    const answer = await t.get(`/v1/points/users/u_1/expiring?cursor=${Buffer.from(text).toString("base64url")}`);
    expect([text, answer.status, answer.json.errors[0].field]).toEqual([text, 400, "query.cursor"]);
  }
});
