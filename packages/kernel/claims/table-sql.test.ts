import { expect, test } from "vitest";
import type { Db } from "../db/index.ts";
import { testDatabase } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { done, retry } from "../worker/index.ts";
import {
  type ClaimRequest,
  type Claims,
  createClaims,
  readBacklog,
  readByColumn,
  readOldestDue,
  tableSql,
} from "./index.ts";

const work = createClaims<{ owner: string }>(sampleJobs);
const sql = tableSql(sampleJobs);
const request = { limit: 10, leaseMs: 60_000, worker: "test" };

async function setup(...owners: readonly string[]) {
  const t = await testDatabase({ tables: createSampleJobs });
  for (const owner of owners) await t.db.query(`insert into sample_jobs (owner) values ($1)`, [owner]);
  return t;
}

async function claimOne(db: Db, from: Claims<{ owner: string }>, claimRequest: ClaimRequest) {
  const [row] = await from.claim(db, claimRequest);
  if (!row) throw new Error("nothing was claimed");
  return row;
}

const update = async (db: Db, text: string, { key, epoch }: { key: string; epoch: string | null }) =>
  (await db.query(text, [key, epoch])).rows;

const statuses = async (db: Db) =>
  (await db.query(`select owner, status from sample_jobs order by job_id`)).rows.map(
    (row) => `${row.owner} ${row.status}`,
  );

test("a worker that lost its lease cannot settle the row", async () => {
  await using t = await setup("a");
  const settle = sql.updateClaimedRow({ set: "status = 'DEAD', owner = t.owner || '!'", lease: "end" });
  const stale = await claimOne(t.db, work, { ...request, leaseMs: 0 });
  const current = await claimOne(t.db, work, request);
  expect(await update(t.db, settle, stale.claim)).toEqual([]);
  expect(await statuses(t.db)).toEqual(["a RUNNING"]);
  expect(await update(t.db, settle, current.claim)).toMatchObject([{ status: "DEAD", owner: "a!", lease_until: null }]);
  expect(await update(t.db, settle, current.claim)).toEqual([]); // The claim has ended.
});

test("without an epoch only an unclaimed row is updated", async () => {
  await using t = await setup("a");
  const end = sql.updateClaimedRow({ set: "status = 'DEAD'", lease: "end", orUnclaimed: true });
  const held = await claimOne(t.db, work, request);
  expect(await update(t.db, end, { key: held.claim.key, epoch: null })).toEqual([]);
  await work.settle(t.db, [{ claim: held.claim, outcome: retry(0, "later") }]);
  expect(await update(t.db, end, held.claim)).toEqual([]);
  expect(await update(t.db, end, { key: held.claim.key, epoch: null })).toHaveLength(1);
});

test("without an epoch a row whose lease has expired is updated", async () => {
  await using t = await setup("a");
  const end = sql.updateClaimedRow({ set: "status = 'DEAD'", lease: "end", orUnclaimed: true });
  const { claim } = await claimOne(t.db, work, { ...request, leaseMs: 0 });
  expect(await update(t.db, end, { key: claim.key, epoch: null })).toHaveLength(1);
});

test("a lease can be renewed until it expires, and can be expired early", async () => {
  await using t = await setup("a");
  const renew = sql.updateClaimedRow({ set: "owner = 'b'", lease: { renewMs: "60000::float8" } });
  const expire = sql.updateClaimedRow({ set: "owner = 'c'", lease: "expire" });
  const late = await claimOne(t.db, work, { ...request, leaseMs: 0 });
  expect(await update(t.db, renew, late.claim)).toEqual([]);
  const held = await claimOne(t.db, work, request);
  expect(await update(t.db, renew, held.claim)).toHaveLength(1);
  expect(await work.claim(t.db, request)).toEqual([]);
  expect(await update(t.db, expire, held.claim)).toHaveLength(1);
  expect(await work.claim(t.db, request)).toMatchObject([{ owner: "c", claim: { attempt: 3 } }]);
});

test("waiting rows can be delayed and made due, up to a limit", async () => {
  await using t = await setup("a", "b", "c");
  const delay = sql.updateWaitingRows({
    state: "READY",
    due: "now",
    where: "t.owner <> 'c'",
    dueInMs: "60000",
    limit: "10",
  });
  await t.db.query(delay);
  expect(await readBacklog(t.db, sampleJobs)).toMatchObject({ ready: 3, claimed: 0, waiting: 0 });
  expect(await work.claim(t.db, request)).toMatchObject([{ owner: "c" }]);
  await t.db.query(sql.updateWaitingRows({ state: "READY", due: "later", dueInMs: "0", limit: "1" }));
  expect(await work.claim(t.db, request)).toHaveLength(1);
});

test("operators can read the backlog, due rows and the rows of one owner", async () => {
  await using t = await setup("a", "b");
  expect(await readOldestDue(t.db, sampleJobs, 1)).toMatchObject([
    { key: "1", status: "READY", attempts: 0, lockedBy: null },
  ]);
  const held = await claimOne(t.db, work, { ...request, limit: 1 });
  expect(await readByColumn(t.db, sampleJobs, { column: "owner", value: "a", limit: 10 })).toMatchObject([
    { key: "1", status: "RUNNING", attempts: 1, lockedBy: "test" },
  ]);
  const backlog = await readBacklog(t.db, sampleJobs);
  expect(backlog).toMatchObject({ ready: 1, claimed: 1 });
  expect(backlog.oldestDueMs).toBeGreaterThan(0);
  await work.settle(t.db, [{ claim: held.claim, outcome: done }]);
  expect(await readByColumn(t.db, sampleJobs, { column: "owner", value: "a", limit: 10 })).toEqual([]);
});

/** Like unresolved orders: a claim is no attempt, and only the job settles its row. */
const unresolved = createClaims<{ owner: string }>({
  ...sampleJobs,
  name: "unresolved",
  states: { ready: "UNKNOWN", claimed: "UNKNOWN", dead: "DEAD" },
  claim: { where: "t.owner <> 'b'", uncounted: true },
  settledByJobsOnly: true,
});

test("a claim can have a condition, keep the state and count no attempt", async () => {
  await using t = await setup("a", "b");
  await t.db.query(`update sample_jobs set status = 'UNKNOWN'`);
  const first = await claimOne(t.db, unresolved, request);
  expect(first).toMatchObject({ owner: "a", claim: { attempt: 0 } });
  expect(await statuses(t.db)).toEqual(["a UNKNOWN", "b UNKNOWN"]);
  expect(await unresolved.claim(t.db, { ...request, dueWithinMs: 60_000 })).toEqual([]);
  expect(await unresolved.settle(t.db, [{ claim: first.claim, outcome: { kind: "dead", reason: "no" } }])).toEqual([
    true,
  ]);
  expect(await statuses(t.db)).toEqual(["a UNKNOWN", "b UNKNOWN"]);
  const second = await claimOne(t.db, unresolved, { ...request, leaseMs: 0 });
  const third = await claimOne(t.db, unresolved, request);
  expect(await unresolved.settle(t.db, [{ claim: second.claim, outcome: done }])).toEqual([false]);
  expect(await unresolved.settle(t.db, [{ claim: third.claim, outcome: done }])).toEqual([true]);
});

test("a claim can be limited to expired leases", async () => {
  await using t = await setup("a", "b");
  const expired = createClaims<{ owner: string }>({
    ...sampleJobs,
    name: "expired",
    claim: { expiredOnly: true, uncounted: true },
  });
  await work.claim(t.db, { ...request, limit: 1, leaseMs: 0 });
  expect(await expired.claim(t.db, { ...request, dueWithinMs: 60_000 })).toMatchObject([
    { owner: "a", claim: { attempt: 1 } },
  ]);
  expect(await expired.claim(t.db, request)).toEqual([]);
});

test("a claim can follow a column order past a position, whether rows are due or not", async () => {
  await using t = await setup("c", "a", "b", "a", "d");
  await t.db.query(`update sample_jobs set status = 'UNKNOWN', next_retry_at = now() + interval '1 hour'`);
  const pass = createClaims<{ owner: string }>({
    ...sampleJobs,
    name: "pass",
    states: { ready: "UNKNOWN", claimed: "UNKNOWN", dead: "DEAD" },
    claim: { orderBy: ["owner", "job_id"], where: "(t.owner, t.job_id) > ($4, $5::bigint) and t.owner <= $6" },
  });
  const claimAfter = async (owner: string, id: string, limit: number) =>
    (await pass.claim(t.db, { ...request, limit, dueWithinMs: 1, values: [owner, id, "c"] })).map(
      (row) => `${row.owner}${row.claim.key}`,
    );
  await t.db.query(
    `update sample_jobs set lease_until = now() + interval '1 hour', locked_by = 'other' where owner = 'b'`,
  );
  expect(await claimAfter("", "0", 1)).toEqual(["a2"]);
  expect(await claimAfter("a", "2", 10)).toEqual(["a4", "c1"]); // b is leased, and d is past the end.
  expect(await claimAfter("c", "1", 10)).toEqual([]);
  await t.db.query(`update sample_jobs set lease_until = now() - interval '1 second'`);
  expect(await claimAfter("a", "4", 10)).toEqual(["b3", "c1"]); // Expired leases can be claimed again.
});
