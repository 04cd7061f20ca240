import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { type Claimed, createClaims } from "../claims/index.ts";
import { outboxClaims } from "../outbox/index.ts";
import { testDatabase, until } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { createWorker, done, type Outcome, retry } from "./index.ts";
import { appendEvents, outboxWorker, readStatuses } from "./testing.ts";

test("a worker claims no more rows than it has room for", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, ...Array.from({ length: 60 }, (_, i) => `a${i}`));
  const finish = Promise.withResolvers<Outcome>();
  let running = 0;
  const run = () => {
    running++;
    return finish.promise;
  };
  await using w = outboxWorker(t.db, run, { settings: { batchMax: 20, concurrency: 30, pollMs: 10 } });
  w.start();
  try {
    await until("it has claimed twice", () => running > 20);
    expect(running).toBe(30);
  } finally {
    finish.resolve(done);
  }
});

test("a retry that is due soon does not wait for the poll", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a");
  const run = async ({ claim }: Claimed<object>) => (claim.attempt === 1 ? retry(50.9, "not yet") : done);
  await using w = outboxWorker(t.db, run, { settings: { pollMs: 600_000 } });
  w.start();
  await until("it is retried", async () => (await readStatuses(t.db))[0] === "PUBLISHED");
});

test("a worker with recent claims still finds rows due in the past and expired leases", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  const jobs = createClaims<object>(sampleJobs);
  const dueWithinMs: (number | undefined)[] = [];
  const watched: typeof jobs = {
    ...jobs,
    claim(db, request) {
      dueWithinMs.push(request.dueWithinMs);
      return jobs.claim(db, request);
    },
  };
  const run = (jobs: readonly unknown[]) => jobs.map(async () => done);
  await using w = createWorker({
    name: "test",
    db: t.db,
    claims: watched,
    run,
    settings: { pollMs: 1_000, leaseMs: 60_000 },
  });
  w.start();
  const areDone = async () => (await t.db.query(`select from sample_jobs`)).rowCount === 0;
  for (let n = 0; n < 20; n++) {
    await t.db.query(`insert into sample_jobs default values`);
    w.wake();
    await until("it is done", areDone);
  }
  expect(dueWithinMs[0]).toBeUndefined();
  expect(dueWithinMs.filter((ms) => ms !== undefined).length).toBeGreaterThan(5);
  await t.db.query(`insert into sample_jobs (next_retry_at) values (now() - interval '1 hour')`);
  await t.db.query(
    `insert into sample_jobs (status, lease_epoch, lease_until) values ('RUNNING', 1, now() - interval '1 s')`,
  );
  w.wake();
  await until("they are done too", areDone);
});

test("slow full claims are rare, and still run ten times in a lease", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  const jobs = createClaims<object>(sampleJobs);
  const tookMs = 400;
  const leaseMs = 5_000;
  const fullClaimAt: number[] = [];
  const slow: typeof jobs = {
    ...jobs,
    async claim(db, request) {
      if (request.dueWithinMs !== undefined) return jobs.claim(db, request);
      await sleep(tookMs); // As with millions of index entries of finished rows, which an open transaction keeps.
      fullClaimAt.push(performance.now());
      return jobs.claim(db, request);
    },
  };
  const run = (jobs: readonly unknown[]) => jobs.map(async () => done);
  await using w = createWorker({ name: "test", db: t.db, claims: slow, run, settings: { pollMs: 20, leaseMs } });
  w.start();
  await until("four full claims have run", () => fullClaimAt.length >= 4);
  const waits = fullClaimAt.slice(1).map((at, index) => at - (fullClaimAt[index] ?? 0) - tookMs);
  // By the poll alone it would be every 10 ms; by a tenth of the time, every 3600.
  for (const ms of waits) expect(ms).toBeGreaterThan((leaseMs / 10) * 0.9);
  expect(Math.min(...waits)).toBeLessThan(9 * tookMs - 100);
});

test("a claim whose result takes longer than the lease is dropped", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a");
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  const stalling: typeof outboxClaims = {
    ...outboxClaims,
    async claim(db, request) {
      const jobs = await outboxClaims.claim(db, request);
      aheadMs += 30_000;
      return jobs;
    },
  };
  let runs = 0;
  const run = (jobs: readonly unknown[]) => {
    runs += jobs.length;
    return jobs.map(async () => done);
  };
  const w = createWorker({ name: "test", db: t.db, claims: stalling, run, settings: { leaseMs: 30_000 } });
  expect(await w.runOnce()).toMatchObject({ claimed: 0 });
  expect(runs).toBe(0);
});
