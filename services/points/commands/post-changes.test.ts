import { randomUUIDv7 } from "node:crypto";
import { type Db, transaction } from "@todoke/kernel/db";
import { openWire } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Grant } from "../ledger/changes.ts";
import { inSeconds, setup } from "../testing.ts";
import { postChanges } from "./post-changes.ts";

const grant = (userId: string, idempotencyKey: string, amount = 5n): Grant => ({
  ...{ kind: "GRANT", id: randomUUIDv7(), idempotencyKey, userId, amount, expiresAt: null },
});

test("a worker books the same grant ten times, at once and one after the other: it happens once", async () => {
  await using t = await setup();
  const bookIt = () => transaction(t.db, (tx) => postChanges(tx, [{ change: grant("u", "reservation:1") }]));
  const results = (await Promise.all(Array.from({ length: 9 }, bookIt))).flat();
  results.push(...(await bookIt()));
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

test("two workers that name the same users in opposite orders, some of them new, never deadlock", async () => {
  await using t = await setup();
  const pools = [t.open(), t.open()] as const;
  let runs = 0;
  const bookAll = (db: Db, round: number, users: readonly string[]) =>
    transaction(db, (tx) => {
      runs++; // A transaction that lost to a deadlock is run again.
      return postChanges(
        tx,
        users.map((user) => ({ change: grant(user, `${round} ${runs} ${user}`) })),
      );
    });
  for (let round = 0; round < 20; round++) {
    const users = Array.from({ length: 150 }, (_, i) => `u_${i + round * 10}`);
    await Promise.all([bookAll(pools[0], round, users), bookAll(pools[1], round, users.toReversed())]);
  }
  expect(runs).toBe(40);
  expect(await t.audit()).toEqual([]);
});

test("what a transaction books is gone when it is rolled back, all of it", async () => {
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
  'a process that is cut off at "%s" (its %s is lost) has done nothing, and the next try does it once',
  async (name, lost) => {
    await using t = await setup();
    await using wire = await openWire(t.url);
    const cutOff = t.process(t.open({ url: wire.url, poolMax: 1 }));
    wire.cutNext(name, lost);
    await expect(cutOff.add("u", 5n, { key: "once" })).rejects.toThrow();
    for (const table of ["point_root", "point_transactions", "point_lots", "outbox_events", "idempotency_keys"])
      expect((await t.rows(`select from ${table}`)).length, table).toBe(0);
    expect(await cutOff.add("u", 5n, { key: "once" })).toMatchObject({ replayed: false, json: { balance: "5" } });
    expect(await cutOff.add("u", 5n, { key: "once" })).toMatchObject({ replayed: true, json: { balance: "5" } });
    expect(await t.audit()).toEqual([]);
  },
);

/** A user with so many lots of one point each, as if they had come one by one. */
async function scatter(db: Db, points: number): Promise<void> {
  const each = `select gen_random_uuid() as id, i from generate_series(1, ${points}) i`;
  await db.query(`
    with given as materialized (${each}),
    transactions as (
      insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                      version, effective_at, created_at)
      select id, 'k' || i, 'u', 1, 'ADD', 1, i, 0, i, now(), now() from given),
    roots as (insert into point_root (user_id, balance, version) values ('u', ${points}, ${points}))
    insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
    select id, 'u', 1, 1, 'infinity', i, now() from given`);
}

test("points that lie in more than 10,000 grants are spent in parts, and a small spend reads only what it takes", async () => {
  await using t = await setup();
  // One connection: it tells its own reads in their order.
  const db = t.open({ poolMax: 1 });
  const { sub, refund } = t.process(db);
  await scatter(db, 10_050);
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

test("what one hold took from more than 10,000 grants comes back whole", async () => {
  await using t = await setup();
  await scatter(t.db, 10_050);
  const { transaction_id: transactionId = "" } = (await t.sub("u", 10_000n)).json;
  const asked = { id: randomUUIDv7(), idempotencyKey: "refund" };
  const hold = { id: randomUUIDv7(), idempotencyKey: "hold", userId: "u", amount: 10_050n, ttlSeconds: 60 };
  // Together: the refund brings what the hold takes, lot by lot.
  const booked = await transaction(t.db, (tx) =>
    postChanges(tx, [{ change: { ...asked, kind: "REFUND", transactionId } }, { change: { ...hold, kind: "HOLD" } }]),
  );
  expect(booked.map(({ result }) => result)).toEqual(["posted", "posted"]);
  await t.age("1 hour");
  expect((await t.add("u", 1n)).json).toMatchObject({ balance: "10051", held: "0" });
  expect(await t.audit()).toEqual([]);
});

/** How many rows of point_lots were fetched by its indexes so far. A session tells what it has read when it is at rest. */
async function lotsRead(db: Db): Promise<bigint> {
  await db.query(`select pg_stat_force_next_flush()`);
  const { rows } = await db.query(`select idx_tup_fetch from pg_stat_user_tables where relname = 'point_lots'`);
  return rows[0].idx_tup_fetch;
}

test("points that a hold gives back are spent in the same breath, together with those that it never had", async () => {
  await using t = await setup();
  await t.add("u", 8n);
  await t.add("u", 2n);
  await t.hold("u", 8n);
  await t.age("1 hour");
  // The hold has ended and nobody has booked that yet: the balance is 2.
  expect(await t.rows(`select balance, held from point_root`)).toEqual([{ balance: 2n, held: 8n }]);
  expect((await t.sub("u", 10n)).json).toMatchObject({ balance: "0" });
  expect(await t.audit()).toEqual([]);
});

test("more lots than are booked at once may run out together: none of it is spent, and all of it is booked in the end", async () => {
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

test("when the database's clock goes back, a user's time does not", async () => {
  await using t = await setup();
  await t.add("u", 5n);
  const [{ at }] = await t.rows(
    `update point_root set updated_at = date_trunc('milliseconds', now()) + interval '1 hour' returning updated_at as at`,
  );
  await t.add("u", 1n);
  const [booked] = await t.rows(`select created_at, effective_at from point_transactions where version = 2`);
  expect(booked).toEqual({ created_at: at, effective_at: at });
});
