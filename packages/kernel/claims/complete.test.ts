import { expect, test } from "vitest";
import { type Db, type Tx, transaction } from "../db/index.ts";
import { outboxClaims } from "../outbox/index.ts";
import { genericPlan, testDatabase } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { retry } from "../worker/index.ts";
import { appendEvents, readStatuses } from "../worker/testing.ts";
import { completeSql } from "./complete.ts";
import { createCompletion } from "./index.ts";
import { resolveSpec } from "./table.ts";

const complete = createCompletion<{ readonly aggregateKey: string }>(outboxClaims.table);
const completedKeys = async (tx: Tx, limit = 10) =>
  (await complete(tx, { limit })).map(({ aggregateKey }) => aggregateKey);
const completeAll = (db: Db) => transaction(db, (tx) => completedKeys(tx));

test("completed rows are done by the commit, with their attempt counted, and untouched after a rollback", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a", "b");
  const rolledBack = transaction(t.db, async (tx) => {
    expect(await completedKeys(tx)).toEqual(["a", "b"]);
    throw new Error("no");
  });
  await expect(rolledBack).rejects.toThrow("no");
  expect(await readStatuses(t.db)).toEqual(["PENDING", "PENDING"]);
  expect(await completeAll(t.db)).toEqual(["a", "b"]);
  const { rows } = await t.db.query(
    `select status, attempt_count, lease_epoch::int, published_at is not null as dated from outbox_events`,
  );
  const published = { status: "PUBLISHED", attempt_count: 1, lease_epoch: 1, dated: true };
  expect(rows).toEqual([published, published]);
});

test("a transaction completes no row past one that another transaction has completed", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a", "b", "a", "b");
  await transaction(t.db, async (first) => {
    expect(await completedKeys(first, 1)).toEqual(["a"]);
    await transaction(t.db, async (second) => expect(await completedKeys(second)).toEqual(["b", "b"]));
  });
  expect(await completeAll(t.db)).toEqual(["a"]);
});

test("rows that are claimed or have failed block their aggregate, and are left to claims", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "claimed", "failed", "dead", "claimed", "failed", "dead", "free");
  const claimed = await outboxClaims.claim(t.db, { limit: 3, leaseMs: 60_000, worker: "test" });
  const claimOf = (index: number) => claimed[index]?.claim as (typeof claimed)[number]["claim"];
  await outboxClaims.settle(t.db, [
    { claim: claimOf(1), outcome: retry(0, "busy") },
    { claim: claimOf(2), outcome: { kind: "dead", reason: "gone" } },
  ]);
  expect(await completeAll(t.db)).toEqual(["free"]);
});

test("an aggregate whose first row waits does not fill the batch of the others", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, ...Array.from({ length: 20 }, () => "parked"), "free");
  await outboxClaims.claim(t.db, { limit: 1, leaseMs: 60_000, worker: "test" });
  await transaction(t.db, async (tx) => expect(await completedKeys(tx, 5)).toEqual(["free"]));
});

test("a row that another transaction is claiming is not completed, before and after its commit", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a", "a");
  const holder = await t.db.connect();
  await holder.query("begin");
  await holder.query(`update outbox_events set status = 'IN_FLIGHT', lease_until = now() + interval '1 hour',
    lease_epoch = 1, attempt_count = 1 where position = (select min(position) from outbox_events)`);
  expect(await completeAll(t.db)).toEqual([]);
  await holder.query("commit");
  holder.release();
  expect(await completeAll(t.db)).toEqual([]);
});

test("an unordered table is completed by due time, within the limit, and its rows are deleted if it keeps none", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  await t.db.query(`insert into sample_jobs (owner, next_retry_at)
    values ('second', now() - interval '1 minute'), ('first', now() - interval '2 minutes'),
           ('third', now() - interval '1 second'), ('later', now() + interval '1 hour')`);
  const completeJobs = createCompletion<{ readonly owner: string }>(sampleJobs);
  const owners = (limit: number, dueWithinMs?: number) =>
    transaction(t.db, async (tx) =>
      (await completeJobs(tx, { limit, ...(dueWithinMs !== undefined && { dueWithinMs }) })).map(({ owner }) => owner),
    );
  expect(await owners(1)).toEqual(["first"]);
  expect(await owners(10, 30_000)).toEqual(["third"]);
  expect(await owners(10)).toEqual(["second"]);
  expect((await t.db.query(`select owner from sample_jobs`)).rows).toEqual([{ owner: "later" }]);
});

test("a completion is made of index probes on an empty table and on stale statistics", async () => {
  await using t = await testDatabase();
  const rows = (status: string, publishedAt: string, n: number) => `
    insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, published_at)
    select gen_random_uuid(), 'T', 's', 'k' || i, 1, '{}', '${status}', ${publishedAt} from generate_series(1, ${n}) i`;
  const sql = completeSql(resolveSpec(outboxClaims.table), {});
  for (const state of [
    "",
    "analyze outbox_events",
    rows("PUBLISHED", "now()", 20_000),
    rows("PENDING", "null", 20_000),
  ]) {
    await t.db.query(state);
    const plan = await genericPlan(t.db, sql);
    expect(plan, `after ${state}`).not.toMatch(/Seq Scan on outbox_events|Bitmap|Join/);
    const probes = plan.match(/Index Scan using outbox_events_(pkey|unfinished) .*\n.*/g) ?? [];
    expect(probes.length).toBeGreaterThan(0);
    for (const probe of probes) expect(probe).toMatch(/Index Cond: \(+(event_id = ANY|aggregate_key = d)/);
  }
});
