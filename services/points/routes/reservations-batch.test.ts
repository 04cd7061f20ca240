import { expect, test } from "vitest";
import { most, setup } from "./testing.ts";

const item = (idempotency_key: string, more: object = {}) => ({
  idempotency_key,
  user_id: "u_1",
  point_amount: 100,
  execute_at: "2999-01-15T10:00:00+09:00",
  ...more,
});

async function batches() {
  const t = await setup();
  const batch = (items: unknown) => t.post("/v1/points/reservations/batch", { body: { items } });
  return { ...t, batch };
}

test("a batch returns a result per item, and keys mean the same as on the single route", async () => {
  await using t = await batches();
  const { idempotency_key: key, ...body } = item("a");
  const single = await t.post("/point/reserve", { key, body });
  const answer = await t.batch([item("b", { point_amount: most }), item("a"), item("a", { point_amount: "100" })]);
  expect([answer.status, answer.headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
  expect(answer.text).toContain(`"point_amount":${most},`);
  const [created, again, third] = answer.json.results;
  expect(created).toMatchObject({ status: 201, body: { user_id: "u_1", status: "PENDING" } });
  expect(created).not.toHaveProperty("replayed");
  for (const each of [again, third]) expect(each).toEqual({ status: 201, body: single.json, replayed: true });
  const { idempotency_key: other, ...rest } = item("b", { point_amount: most });
  expect((await t.post("/v1/points/reservations", { key: other, body: rest })).json.id).toBe(created.body.id);
});

test("two concurrent batches of 1,000 items reserve each once; a bad item fails alone", async () => {
  await using t = await batches();
  const long = (i: number) => ({ user_id: `${i}`.padEnd(128, "届"), reason: "届".repeat(128) });
  const items = Array.from({ length: 1_000 }, (_, i) => item(`${i}`.padEnd(255, "k"), long(i)));
  items[7] = item("bad", { expires_at: "2999-01-15T00:59:59Z" });
  items[8] = item(items[9]?.idempotency_key as string, { point_amount: 5 }); // the key's first body, so item 9 conflicts
  const other = await t.serve();
  const answers = await Promise.all([t.batch(items), other.post("/v1/points/reservations/batch", { body: { items } })]);
  for (const { json } of answers) {
    const results = json.results as { status: number; body: { code?: string; user_id?: string } }[];
    expect(results.length).toBe(1_000);
    expect(results[7]).toMatchObject({ status: 422, body: { code: "lot-end-in-the-past" } });
    expect(results[9]).toMatchObject({ status: 409, body: { code: "idempotency-conflict" } });
    expect(results.filter(({ status }) => status === 201).length).toBe(998);
    expect(results[999]?.body.user_id).toBe(items[999]?.user_id);
  }
  expect(await t.statuses()).toEqual({ PENDING: 998 });
});

test("an invalid batch is refused as a whole with the field of the item", async () => {
  await using t = await batches();
  const cases = [
    [[], "body.items"],
    [Array.from({ length: 1_001 }, (_, i) => item(`k${i}`)), "body.items"],
    [[item("good"), item("a b")], "body.items[1].idempotency_key"],
    [[item("good"), item("")], "body.items[1].idempotency_key"],
    [[item("good"), item("k", { point_amount: 0 })], "body.items[1].point_amount"],
    [[item("good"), item("k", { point_amount: "9223372036854775808" })], "body.items[1].point_amount"],
    [[item("good"), item("k", { execute_at: "2027-02-29T00:00:00Z" })], "body.items[1].execute_at"],
    [[item("good"), item("k", { execute_at: "9999-12-31T23:59:59-00:01" })], "body.items[1].execute_at"],
    [[item("good"), item("k", { extra: 1 })], "body.items[1].extra"],
  ] as const;
  for (const [items, field] of cases) {
    const answer = await t.batch(items);
    expect([field, answer.status]).toEqual([field, 400]);
    expect(answer.json.errors.map((error: { field: string }) => error.field)).toContain(field);
  }
  expect(await t.statuses()).toEqual({});
});
