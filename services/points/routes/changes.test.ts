import { describe, expect, test } from "vitest";
import { most, setup } from "./testing.ts";

const add = (point_amount: unknown, more: object = {}) => ({ user_id: "u_1", point_amount, ...more });

test("both paths add and spend points and return the balance", async () => {
  await using t = await setup();
  const added = await t.put("/point/add", {
    key: "k1",
    body: add(100, { reason: "campaign", source: "c", source_id: "9" }),
  });
  expect([added.status, added.headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
  expect(added.json).toEqual({
    transaction_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    user_id: "u_1",
    kind: "ADD",
    point_amount: 100,
    moved: 100,
    balance: 100,
    held: 0,
    version: 1,
    reason: "campaign",
    source: "c",
    source_id: "9",
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
  expect((await t.post("/v1/points/additions", { key: "k2", body: add("7") })).json).toMatchObject({ balance: 107 });
  expect((await t.put("/point/sub", { key: "k3", body: add(30) })).json).toMatchObject({ kind: "SUB", balance: 77 });
  const spent = await t.post("/v1/points/spends", { key: "k4", body: add(7) });
  expect([spent.status, spent.json]).toMatchObject([200, { point_amount: -7, balance: 70, version: 4 }]);
  expect((await t.get("/point/confirm?user_id=u_1")).json).toMatchObject({ balance: 70, held: 0, pending: 0 });
});

describe.each([
  ["as a number", most],
  ["as a string", `"${most}"`],
])("2^63 - 1 %s", (_, amount) => {
  test("is stored and returned exactly, and one point more is refused", async () => {
    await using t = await setup();
    const sent = (digits: string) => `{"user_id":"u_1","point_amount":${digits}}`;
    const added = await t.put("/point/add", { key: "k1", body: sent(amount) });
    expect(added.text).toContain(`"point_amount":${most},"moved":${most},"balance":${most},`);
    expect((await t.get("/v1/points/users/u_1/balance")).text).toContain(`"balance":${most},`);
    const over = await t.put("/point/add", { key: "k2", body: sent("1") });
    expect([over.status, over.json.code]).toEqual([409, "balance-overflow"]);
    const spent = await t.put("/point/sub", { key: "k3", body: sent(amount) });
    expect(spent.text).toContain(`"point_amount":-${most},"moved":${most},"balance":0,`);
    expect((await t.put("/point/sub", { key: "k4", body: sent("1") })).json.code).toBe("insufficient-points");
  });
});

test("an invalid amount is refused on every path and stores nothing", async () => {
  await using t = await setup();
  const wrong = [
    "9223372036854775808",
    '"9223372036854775808"',
    "99999999999999999999",
    "0",
    '"0"',
    "-1",
    '"-1"',
    "1.5",
  ];
  const more = ['"01"', '"1e3"', "1e30", '""', '" 1"', "null", "true", "[1]", "{}", "-9223372036854775809"];
  for (const amount of [...wrong, ...more]) {
    for (const [method, url] of [
      [t.put, "/point/add"],
      [t.post, "/v1/points/spends"],
      [t.post, "/v1/points/holds"],
    ] as const) {
      const answer = await method(url, { key: "k", body: `{"user_id":"u_1","point_amount":${amount}}` });
      expect([amount, answer.status]).toEqual([amount, 400]);
      expect(new Set(answer.json.errors.map((error: { field: string }) => error.field))).toEqual(
        new Set(["body.point_amount"]),
      );
    }
  }
  expect(await t.rows(`select from point_root`)).toEqual([]);
});

test('a key means the same on both paths, for 100 and for "100"', async () => {
  await using t = await setup();
  const first = await t.put("/point/add", { key: "k", body: add(100) });
  const again = await t.post("/v1/points/additions", { key: "k", body: `{"point_amount":"100","user_id":"u_1"}` });
  expect([again.isReplay, again.status, again.text]).toEqual([true, first.status, first.text]);
  const other = await t.post("/v1/points/additions", { key: "k", body: add(101) });
  expect([other.status, other.json.code]).toEqual([409, "idempotency-conflict"]);
  // The key of another command or caller is independent.
  expect((await t.put("/point/sub", { key: "k", body: add(10) })).json).toMatchObject({ kind: "SUB", balance: 90 });
  expect((await t.put("/point/add", { key: "k", body: add(100), holder: "game" })).json.balance).toBe(190);
  expect((await t.put("/point/add", { body: add(1) })).json.code).toBe("idempotency-key-missing");
});

test("expired points, unknown fields and user ids over 128 characters are refused", async () => {
  await using t = await setup();
  const past = await t.put("/point/add", { key: "k1", body: add(1, { expires_at: "2020-01-01T00:00:00Z" }) });
  expect([past.status, past.json.code]).toEqual([422, "lot-end-in-the-past"]);
  const kept = await t.put("/point/add", { key: "k1", body: add(1, { expires_at: "2999-12-31T23:59:59.9999+09:00" }) });
  expect(kept.status).toBe(200);
  const lots = await t.rows(`select expires_at = '2999-12-31T15:00:00Z' as is_rounded_up from point_lots`);
  expect(lots).toEqual([{ is_rounded_up: true }]);
  for (const [body, field] of [
    [add(1, { amount: 1 }), "body.amount"],
    [add(1, { user_id: "" }), "body.user_id"],
    [add(1, { user_id: "届".repeat(129) }), "body.user_id"],
    [add(1, { reason: "x".repeat(129) }), "body.reason"],
    [add(1, { expires_at: "9999-12-31T23:59:59-01:00" }), "body.expires_at"],
    [{ point_amount: 1 }, "body.user_id"],
  ] as const) {
    const answer = await t.put("/point/add", { key: "k2", body });
    expect([answer.status, answer.json.errors[0].field]).toEqual([400, field]);
  }
  const name = "届".repeat(128);
  expect((await t.put("/point/add", { key: "k3", body: add(5, { user_id: name }) })).json.user_id).toBe(name);
  const long = "u".repeat(128);
  await t.put("/point/add", { key: "k4", body: add(6, { user_id: long }) });
  expect((await t.get(`/v1/points/users/${long}/balance`)).json.balance).toBe(6);
  expect((await t.get(`/point/confirm?user_id=${encodeURIComponent(name)}`)).json.balance).toBe(5);
});

test("of 64 parallel spends at two processes, only as many succeed as the balance allows", async () => {
  await using t = await setup();
  await t.put("/point/add", { key: "k", body: add(300) });
  const processes = [await t.serve(), await t.serve()];
  const answers = await Promise.all(
    Array.from({ length: 64 }, (_, i) => processes[i % 2]?.put("/point/sub", { key: `s${i}`, body: add(10) })),
  );
  const ends = answers.map((answer) => answer?.json.code ?? answer?.json.kind);
  expect(ends.filter((end) => end === "SUB").length).toBe(30);
  expect(ends.filter((end) => end === "insufficient-points").length).toBe(34);
  expect((await t.get("/v1/points/users/u_1/balance")).json).toMatchObject({ balance: 0, version: 31 });
});

test("a spend is refunded in parts, never more than was spent", async () => {
  await using t = await setup();
  await t.put("/point/add", { key: "k1", body: add(100) });
  const { transaction_id } = (await t.put("/point/sub", { key: "k2", body: add(60) })).json;
  const refund = (key: string, more: object = {}) =>
    t.post("/v1/points/refunds", { key, body: { transaction_id, ...more } });
  const part = await refund("k3", { point_amount: "20", reason: "damaged" });
  expect([part.status, part.json]).toMatchObject([201, { kind: "REFUND", balance: 60, refers_to: transaction_id }]);
  expect((await refund("k3", { point_amount: 20, reason: "damaged" })).isReplay).toBe(true);
  expect((await refund("k4", { point_amount: 41 })).json.code).toBe("refund-too-large");
  const capitals = { transaction_id: transaction_id.toUpperCase() };
  expect((await refund("k5", capitals)).json).toMatchObject({ point_amount: 40, balance: 100 });
  expect((await refund("k6")).json.code).toBe("refund-too-large");
  expect((await refund("k7", { transaction_id: "0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f" })).status).toBe(404);
});
