import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { inSeconds, setup } from "../testing.ts";
import { selectBalance, selectBalanceAsOf } from "./balances.ts";
import { selectExpiringLots } from "./expiring-lots.ts";
import { selectHold } from "./holds.ts";
import { selectStatement } from "./statement.ts";

test("a balance shows spendable, held and reserved points; an unknown user has 0", async () => {
  await using t = await setup();
  await t.add("u", 10n, { expiresAt: inSeconds(600) });
  await t.add("u", 10n);
  await t.hold("u", 4n);
  await t.db.query(
    `insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash)
     select gen_random_uuid(), 'u', 9223372036854775807, now(), 'k' || i, sha256('') from generate_series(1, 2) i`,
  );
  const pending = 2n * 9_223_372_036_854_775_807n;
  expect(await selectBalance(t.db, "u")).toMatchObject({ balance: 16n, held: 4n, version: 3n, pending });
  expect(await selectBalance(t.db, "v")).toMatchObject({ balance: 0n, held: 0n, version: 0n, pending: 0n });
  await t.age("11 minutes");
  expect(await selectBalance(t.db, "u")).toMatchObject({ balance: 10n, held: 4n, version: 3n });
});

/** Records times, each in a millisecond of its own. */
function marking(t: Awaited<ReturnType<typeof setup>>) {
  const times: string[] = [];
  const mark = async () => {
    const [{ at }] = await t.rows(`select clock_timestamp()::text as at`);
    times.push(at);
    // The ledger's times have milliseconds, so the next change must be in a later one.
    const hasPassed = `select date_trunc('milliseconds', clock_timestamp()) > $1::timestamptz as over`;
    await until("the next millisecond", async () => (await t.rows(hasPassed, [at]))[0].over);
  };
  return { times, mark };
}

test("a past balance excludes points that had expired but were posted later", async () => {
  await using t = await setup();
  const { times, mark } = marking(t);
  await mark();
  await t.add("u", 10n, { expiresAt: inSeconds(600) });
  await mark();
  await t.sub("u", 3n);
  await mark();
  const asOf = async (at: string | undefined) => (await selectBalanceAsOf(t.db, "u", at ?? "")).balance;
  expect(await Promise.all(times.map(asOf))).toEqual([0n, 10n, 7n]);
  // The lot expires between two marks: first not posted, then posted.
  await t.db.query(`update point_lots set expires_at = clock_timestamp()`);
  await mark();
  expect(await Promise.all(times.map(asOf))).toEqual([0n, 10n, 7n, 0n]);
  await t.add("u", 1n);
  expect(await Promise.all(times.map(asOf))).toEqual([0n, 10n, 7n, 0n]);
  expect(await asOf("9999-12-31T23:59:59Z")).toBe(1n);
  expect(await t.rows(`select kind from point_transactions order by version`)).toEqual(
    ["ADD", "SUB", "EXPIRE", "ADD"].map((kind) => ({ kind })),
  );
});

test("a statement has pages, the balance after each transaction, and filters", async () => {
  await using t = await setup();
  for (let i = 1n; i <= 5n; i++) await t.add("u", i);
  await t.change({ kind: "SUB", userId: "u", amount: 4n, source: "order", sourceId: "o_1", reason: "a hat" });
  await t.add("other", 1n);
  const page = { userId: "u", limit: 4 };
  const first = await selectStatement(t.db, page);
  expect(first.map((row) => [row.version, row.balance])).toEqual([
    [6n, 11n],
    [5n, 15n],
    [4n, 10n],
    [3n, 6n],
  ]);
  expect(first[0]).toMatchObject({ reason: "a hat", source: "order", from_account: "user:u", to_account: "spent" });
  expect(first[1]).not.toHaveProperty("reason");
  const second = await selectStatement(t.db, { ...page, before: "3" });
  expect(second.map((row) => row.balance)).toEqual([3n, 1n]);
  const versions = async (filter: object) =>
    (await selectStatement(t.db, { ...page, ...filter })).map((row) => row.version);
  expect(await versions({ kinds: ["SUB", "HOLD"] })).toEqual([6n]);
  expect(await versions({ source: "order", sourceId: "o_1" })).toEqual([6n]);
  expect(await versions({ source: "order", sourceId: "o_2" })).toEqual([]);
  const from = (await selectStatement(t.db, { ...page, before: "5" }))[0]?.created_at;
  const sinceFourth = await t.rows(
    `select version from point_transactions where user_id = 'u' and created_at >= $1 order by version desc`,
    [from],
  );
  expect(await versions({ from, limit: 100 })).toEqual(sinceFourth.map((row) => row.version));
  expect(await versions({ to: from, limit: 100 })).toEqual([6n, 5n, 4n, 3n, 2n, 1n].slice(sinceFourth.length));
  expect(await versions({ from: inSeconds(3_600) })).toEqual([]);
  expect(await versions({ to: inSeconds(-3_600) })).toEqual([]);
});

test("expiring lots are listed by expiry, page by page", async () => {
  await using t = await setup();
  for (const [amount, seconds] of [
    [3n, 3_000],
    [1n, 1_000],
    [2n, 2_000],
    [9n, 9_000],
  ] as const)
    await t.add("u", amount, { expiresAt: inSeconds(seconds) });
  await t.add("u", 50n);
  const page = { userId: "u", withinSeconds: 3_600 };
  const first = await selectExpiringLots(t.db, { ...page, limit: 2 });
  expect(first.map((lot) => lot.remaining)).toEqual([1n, 2n]);
  expect((await selectExpiringLots(t.db, { ...page, limit: 2, after: first[1] })).map((lot) => lot.remaining)).toEqual([
    3n,
  ]);
  await t.age("1500 seconds");
  expect((await selectExpiringLots(t.db, { ...page, limit: 9 })).map((lot) => lot.remaining)).toEqual([2n, 3n]);
});

test("a hold reads as EXPIRED from its end, before its expiry is posted", async () => {
  await using t = await setup();
  await t.add("u", 10n);
  const { hold_id = "" } = (await t.hold("u", 4n)).json;
  expect(await selectHold(t.db, hold_id)).toMatchObject({ status: "HELD", amount: 4n, released: 0n });
  await t.age("1 hour");
  expect(await selectHold(t.db, hold_id)).toMatchObject({ status: "EXPIRED", amount: 4n, released: 4n });
  await expect(t.capture(hold_id)).rejects.toMatchObject({ code: "hold-ended" });
});

test("a past balance counts expired holds, whose points expire if their lot has", async () => {
  await using t = await setup();
  const { times, mark } = marking(t);
  await t.add("u", 10n, { expiresAt: inSeconds(600) });
  await t.hold("u", 8n);
  await mark();
  await t.db.query(`update point_lots set expires_at = clock_timestamp()`);
  await mark();
  await t.db.query(`update point_holds set ends_at = clock_timestamp()`);
  await mark();
  const asOf = () =>
    Promise.all(
      times.map(async (at) => {
        const { balance, held } = await selectBalanceAsOf(t.db, "u", at);
        return [balance, held];
      }),
    );
  const expected = [
    [2n, 8n],
    [0n, 8n],
    [0n, 0n],
  ];
  // First not posted, then posted.
  expect(await asOf()).toEqual(expected);
  await t.add("u", 1n);
  expect(await asOf()).toEqual(expected);
});
