import { expect, test } from "vitest";
import { most, setup } from "./testing.ts";

async function setupStatement() {
  const t = await setup();
  let keys = 0;
  const change = async (url: string, point_amount: unknown, more: object = {}) =>
    (await t.put(url, { key: `k${keys++}`, body: { user_id: "u_1", point_amount, ...more } })).json;
  return {
    ...t,
    add: (amount: unknown, more?: object) => change("/point/add", amount, more),
    sub: (amount: unknown, more?: object) => change("/point/sub", amount, more),
    statement: (query = "") => t.get(`/v1/points/users/u_1/statement${query}`),
    csv: (query = "") => t.get(`/v1/points/users/u_1/statement.csv${query}`),
  };
}

const versions = ({ json }: { json: { transactions: { version: number }[] } }) =>
  json.transactions.map((each) => each.version);

test("a statement shows each transaction with its exact balance and both accounts", async () => {
  await using t = await setupStatement();
  const added = await t.add(100, { reason: "welcome" });
  const spent = await t.sub(30, { source: "order", source_id: "o_1" });
  const { json } = await t.statement();
  expect(json).toEqual({
    user_id: "u_1",
    transactions: [
      { ...spent, from_account: "user:u_1", to_account: "spent" },
      { ...added, from_account: "issuer", to_account: "user:u_1" },
    ],
  });
  await t.add(`${BigInt(most) - 70n}`);
  expect((await t.statement("?limit=1")).text).toContain(`"balance":${most},`);
  expect((await t.get("/v1/points/users/unknown/statement")).json).toEqual({ user_id: "unknown", transactions: [] });
});

test("new transactions do not shift the pages of a statement", async () => {
  await using t = await setupStatement();
  for (let i = 0; i < 7; i++) await t.add(1);
  const seen: number[] = [];
  let query = "?limit=2";
  for (let pages = 0; pages < 9; pages++) {
    const answer = await t.statement(query);
    seen.push(...versions(answer));
    if (!answer.json.next_cursor) break;
    await t.add(1);
    query = `?limit=2&cursor=${answer.json.next_cursor}`;
  }
  expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1]);
});

test("a statement is filtered by kind, source and time; an invalid filter is refused", async () => {
  await using t = await setupStatement();
  await t.add(100);
  await t.sub(30, { source: "order", source_id: "o_1" });
  await t.sub(10, { source: "order", source_id: "o_2" });
  expect(versions(await t.statement("?kind=SUB"))).toEqual([3, 2]);
  expect(versions(await t.statement("?source=order&source_id=o_1"))).toEqual([2]);
  expect(versions(await t.statement("?from=2999-01-01T00:00:00%2B09:00"))).toEqual([]);
  expect(versions(await t.statement("?from=2020-01-01T00:00:00Z&to=2999-01-01T00:00:00Z"))).toEqual([3, 2, 1]);
  for (const [query, field] of [
    ["?kind=GIFT", "query.kind"],
    ["?from=yesterday", "query.from"],
    ["?to=9999-12-31T23:59:59-00:01", "query.to"],
    ["?from=2027-01-01T00:00:00+09:00", "query.from"], // an unescaped plus is a space
    ["?cursor=AA", "query.cursor"],
    ["?limit=0", "query.limit"],
    ["?user=u_2", "query.user"],
  ] as const) {
    const answer = await t.statement(query);
    expect([query, answer.status, answer.json.errors?.[0].field]).toEqual([query, 400, field]);
  }
  expect((await t.csv("?kind=GIFT")).json.errors[0].field).toBe("query.kind");
  expect((await t.csv("?limit=5")).json.errors[0].field).toBe("query.limit");
});

test("the CSV file has a header, quoted cells and no formulas", async () => {
  await using t = await setupStatement();
  const added = await t.add(most, { reason: '=HYPERLINK("x"),\nnew' });
  const spent = await t.sub(30, { source: "order", source_id: "-o,1" });
  const file = await t.csv();
  expect([file.status, file.headers["content-type"], file.headers["content-disposition"]]).toEqual([
    200,
    "text/csv; charset=utf-8; header=present",
    'attachment; filename="points.csv"',
  ]);
  expect(file.text).toBe(
    [
      "version,created_at,kind,point_amount,moved,balance,held,from_account,to_account,reason,source,source_id,refers_to,transaction_id,user_id",
      `2,${spent.created_at},SUB,-30,30,9223372036854775777,0,user:u_1,spent,,order,"'-o,1",,${spent.transaction_id},u_1`,
      `1,${added.created_at},ADD,${most},${most},${most},0,issuer,user:u_1,"'=HYPERLINK(""x""),\nnew",,,,${added.transaction_id},u_1`,
      "",
    ].join("\r\n"),
  );
  expect((await t.csv("?kind=ADD")).text.split("\r\n").length).toBe(3);
  expect((await t.get("/v1/points/users/unknown/statement.csv")).text.split("\r\n").length).toBe(2);
});

test("a long CSV file has every row once, in order", async () => {
  await using t = await setupStatement();
  await Promise.all(Array.from({ length: 2_300 }, () => t.add(1)));
  const rows = (await t.csv()).text.trimEnd().split("\r\n").slice(1);
  expect(rows.map((row) => Number(row.split(",", 1)[0]))).toEqual(Array.from({ length: 2_300 }, (_, i) => 2_300 - i));
});
