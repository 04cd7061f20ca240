import { randomUUIDv7 } from "node:crypto";
import { type Db, transaction } from "@todoke/kernel/db";
import { openFaultProxy } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Grant } from "../ledger/changes.ts";
import { inSeconds, setup } from "../testing.ts";
import { postChanges } from "./post-changes.ts";

const grant = (userId: string, idempotencyKey: string, amount = 5n): Grant => ({
  ...{ kind: "GRANT", id: randomUUIDv7(), idempotencyKey, userId, amount, expiresAt: null },
});

test("a grant that is posted ten times, also concurrently, takes effect once", async () => {
  await using t = await setup();
  const post = () => transaction(t.db, (tx) => postChanges(tx, [{ change: grant("u", "reservation:1") }]));
  const results = (await Promise.all(Array.from({ length: 9 }, post))).flat();
  results.push(...(await post()));
  expect(results.filter(({ result }) => result === "posted").length).toBe(1);
  expect(
    new Set(
      results.map((each) =>
        "applied" in each ? each.applied.transaction.id : "transactionId" in each && each.transactionId,
      ),
    ).size,
  ).toBe(1);
  const twice = await transaction(t.db, (tx) =>
    postChanges(
      tx,
      ["reservation:2", "reservation:2"].map((key) => ({ change: grant("u", key) })),
    ),
  );
  expect(twice.map(({ result }) => result)).toEqual(["posted", "replayed"]);
  expect(await t.rows(`select balance, version from point_root`)).toEqual([{ balance: 10n, version: 2n }]);
});

test("random batches with users in opposite order, some of them new, do not deadlock", async () => {
  await using t = await setup();
  const pools = [t.open(), t.open()] as const;
  let runs = 0;
  const postAll = (db: Db, round: number, users: readonly string[]) =>
    transaction(db, (tx) => {
      runs++; // The victim of a deadlock is run again.
      return postChanges(
        tx,
        users.map((user) => ({ change: grant(user, `${round} ${runs} ${user}`) })),
      );
    });
  for (let round = 0; round < 20; round++) {
    const users = Array.from({ length: 150 }, (_, i) => `u_${i + round * 10}`);
    await Promise.all([postAll(pools[0], round, users), postAll(pools[1], round, users.toReversed())]);
  }
  expect(runs).toBe(40);
  expect(await t.audit()).toEqual([]);
});

test("a rollback removes everything that was posted", async () => {
  await using t = await setup();
  const failing = transaction(t.db, async (tx) => {
    await postChanges(tx, [{ change: grant("u", "reservation:1") }]);
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  for (const table of ["point_root", "point_transactions", "point_lots", "outbox_events"])
    expect((await t.rows(`select from ${table}`)).length, table).toBe(0);
});

const statements = [
  "begin",
  "select affected users",
  "lock point roots",
  "select existing transactions",
  "load point accounts",
  "write point ledger",
];

test.each(statements.flatMap((name) => [[name, "request"] as const, [name, "answer"] as const]))(
  'a connection lost at "%s" (its %s) changes nothing, and the retry takes effect once',
  async (name, lost) => {
    await using t = await setup();
    await using wire = await openFaultProxy(t.url);
    const through = t.process(t.open({ url: wire.url, poolMax: 1 }));
    await t.add("u", 3n, { key: "first" }); // Accounts are loaded only of users who have transactions.
    wire.cutNext(name, lost);
    await expect(through.add("u", 5n, { key: "once" })).rejects.toThrow();
    for (const table of ["point_root", "point_transactions", "point_lots", "outbox_events", "idempotency_keys"])
      expect((await t.rows(`select from ${table}`)).length, table).toBe(1);
    expect(await t.balanceOf("u")).toBe(3n);
    expect(await through.add("u", 5n, { key: "once" })).toMatchObject({ replayed: false, json: { balance: "8" } });
    expect(await through.add("u", 5n, { key: "once" })).toMatchObject({ replayed: true, json: { balance: "8" } });
    expect(await t.audit()).toEqual([]);
  },
);

/** Creates a user with that many lots of one point each. */
async function insertLots(db: Db, points: number): Promise<void> {
  const each = `select gen_random_uuid() as id, i from generate_series(1, ${points}) i`;
  await db.query(`
    with lots as materialized (${each}),
    transactions as (
      insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                      version, effective_at, created_at)
      select id, 'k' || i, 'u', 1, 'ADD', 1, i, 0, i, now(), now() from lots),
    roots as (insert into point_root (user_id, balance, version) values ('u', ${points}, ${points}))
    insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
    select id, 'u', 1, 1, 'infinity', i, now() from lots`);
}

test("a spend uses at most 10,000 lots, and a small spend reads only the lots it needs", async () => {
  await using t = await setup();
  // One connection, so that its statistics are complete.
  const db = t.open({ poolMax: 1 });
  const { sub, refund } = t.process(db);
  await insertLots(db, 10_050);
  await expect(sub("u", 10_001n)).rejects.toMatchObject({ code: "too-many-lots" });
  await expect(sub("u", 10_051n)).rejects.toMatchObject({ code: "insufficient-points" });
  const spent = await sub("u", 10_000n);
  expect(spent.json.balance).toBe("50");
  expect((await refund(spent.json.transaction_id ?? "")).json.balance).toBe("10050");
  const readBefore = await lotsRead(db);
  await sub("u", 2n);
  expect((await lotsRead(db)) - readBefore).toBeLessThan(50n);
  expect(await t.rows(`select sum(version)::int as versions from point_lots where remaining = 0`)).toEqual([
    { versions: 3 },
  ]);
  expect(await t.audit()).toEqual([]);
});

test("a hold over more than 10,000 lots is returned completely", async () => {
  await using t = await setup();
  await insertLots(t.db, 10_050);
  const { transaction_id: transactionId = "" } = (await t.sub("u", 10_000n)).json;
  const refund = { id: randomUUIDv7(), idempotencyKey: "refund" };
  const hold = { id: randomUUIDv7(), idempotencyKey: "hold", userId: "u", amount: 10_050n, ttlSeconds: 60 };
  // In one batch: the refund fills the lots that the hold takes.
  const posted = await transaction(t.db, (tx) =>
    postChanges(tx, [{ change: { ...refund, kind: "REFUND", transactionId } }, { change: { ...hold, kind: "HOLD" } }]),
  );
  expect(posted.map(({ result }) => result)).toEqual(["posted", "posted"]);
  await t.age("1 hour");
  expect((await t.add("u", 1n)).json).toMatchObject({ balance: "10051", held: "0" });
  expect(await t.audit()).toEqual([]);
});

/** The number of rows of point_lots that were fetched by index so far. */
async function lotsRead(db: Db): Promise<bigint> {
  await db.query(`select pg_stat_force_next_flush()`);
  const { rows } = await db.query(`select idx_tup_fetch from pg_stat_user_tables where relname = 'point_lots'`);
  return rows[0].idx_tup_fetch;
}

test("points of an expired hold can be spent before its expiry is posted", async () => {
  await using t = await setup();
  await t.add("u", 8n);
  await t.add("u", 2n);
  await t.hold("u", 8n);
  await t.age("1 hour");
  // The hold has expired, which is not posted yet.
  expect(await t.rows(`select balance, held from point_root`)).toEqual([{ balance: 2n, held: 8n }]);
  expect((await t.sub("u", 10n)).json).toMatchObject({ balance: "0" });
  expect(await t.audit()).toEqual([]);
});

test("more expired lots than fit in one batch are never spent, and all are posted", async () => {
  await using t = await setup();
  await Promise.all(Array.from({ length: 250 }, () => t.add("u", 1n, { expiresAt: inSeconds(600) })));
  await t.add("u", 3n);
  await t.age("1 hour");
  await expect(t.sub("u", 4n)).rejects.toMatchObject({ code: "insufficient-points" });
  await t.sub("u", 1n);
  expect((await t.sub("u", 2n)).json.balance).toBe("0");
  expect(await t.rows(`select count(*)::int as n from point_transactions where kind = 'EXPIRE'`)).toEqual([{ n: 250 }]);
  expect(await t.audit()).toEqual([]);
});

test("a user's transaction times do not step back with the database's clock", async () => {
  await using t = await setup();
  await t.add("u", 5n);
  const [{ at }] = await t.rows(
    `update point_root set updated_at = date_trunc('milliseconds', now()) + interval '1 hour' returning updated_at as at`,
  );
  await t.add("u", 1n);
  const [posted] = await t.rows(`select created_at, effective_at from point_transactions where version = 2`);
  expect(posted).toEqual({ created_at: at, effective_at: at });
});
