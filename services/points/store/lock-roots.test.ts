import { randomUUIDv7 } from "node:crypto";
import { type Tx, transaction } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { postChanges, postExpirations } from "../commands/post-changes.ts";
import { inSeconds, setup } from "../testing.ts";

const users = ["a", "m", "z"];

/**
 * Runs two batches with the users in opposite order while another session blocks "m", until both batches wait. Locked in
 * the given order, each would now hold a user that the other one needs. Returns the number of runs: a transaction that is
 * the victim of a deadlock is run again.
 */
async function runOpposite(
  t: Awaited<ReturnType<typeof setup>>,
  { block, post }: { block: string; post: (tx: Tx, userIds: readonly string[]) => Promise<unknown> },
): Promise<number> {
  const blocker = await t.db.connect();
  await blocker.query("begin");
  await blocker.query(block);
  let runs = 0;
  const batches = [users, users.toReversed()].map((userIds) =>
    transaction(t.open(), (tx) => {
      runs++;
      return post(tx, userIds);
    }),
  );
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until("both batches wait", async () => (await t.rows(waiting)).length === 2);
  await blocker.query("rollback");
  blocker.release();
  await Promise.all(batches);
  return runs;
}

const ids = () => ({ id: randomUUIDv7(), idempotencyKey: randomUUIDv7() });
const lockUser = `select from point_root where user_id = 'm' for update`;
const insertUser = `insert into point_root (user_id) values ('m')`;

test("two batches with the same users in opposite order do not deadlock", async () => {
  await using t = await setup();
  for (const user of users) await t.add(user, 10n);
  const spend = (tx: Tx, userIds: readonly string[]) =>
    postChanges(
      tx,
      userIds.map((userId) => ({ change: { kind: "SUB", userId, amount: 1n, ...ids() } })),
    );
  expect(await runOpposite(t, { block: lockUser, post: spend })).toBe(2);
  expect(await t.rows(`select distinct balance from point_root`)).toEqual([{ balance: 8n }]);
});

test("two batches with the same new users in opposite order do not deadlock", async () => {
  await using t = await setup();
  const grant = (tx: Tx, userIds: readonly string[]) =>
    postChanges(
      tx,
      userIds.map((userId) => ({ change: { kind: "GRANT", userId, amount: 1n, expiresAt: null, ...ids() } })),
    );
  expect(await runOpposite(t, { block: insertUser, post: grant })).toBe(2);
  expect(await t.rows(`select distinct balance from point_root`)).toEqual([{ balance: 2n }]);
});

test("two expiry batches with the same users in opposite order do not deadlock", async () => {
  await using t = await setup();
  for (const user of users) await t.add(user, 10n, { expiresAt: inSeconds(600) });
  await t.age("1 hour");
  expect(await runOpposite(t, { block: lockUser, post: postExpirations })).toBe(2);
  expect(await t.rows(`select count(*)::int as n from point_transactions where kind = 'EXPIRE'`)).toEqual([{ n: 3 }]);
});
