import { expect, test, vi } from "vitest";
import { type Claimed, type Claims, claims } from "../claims/index.ts";
import { testDatabase } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { type InFlightOptions, trackInFlightJobs } from "./in-flight-jobs.ts";
import { dead, defaultSettings, done, type JobOutcome, retry } from "./index.ts";

interface SampleJob {
  readonly owner: string;
}
type Job = Claimed<SampleJob>;

const described = claims<SampleJob>(sampleJobs);

/** Sample jobs that are claimed and begun; nothing here renews, settles or stops but the test. */
async function setup(
  owners: readonly string[],
  options: Partial<InFlightOptions<SampleJob>> & { leaseMs?: number } = {},
) {
  const t = await testDatabase();
  await t.db.query(createSampleJobs);
  await t.db.query(`insert into sample_jobs (owner) select * from unnest($1::text[])`, [owners]);
  const { leaseMs = 60_000, ...more } = options;
  const errors: string[] = [];
  const running = new Map<string, PromiseWithResolvers<JobOutcome>>(
    owners.map((owner) => [owner, Promise.withResolvers()]),
  );
  const signals = new Map<string, AbortSignal>();
  const held = trackInFlightJobs<SampleJob>({
    name: "test",
    db: t.db,
    claims: described,
    run: (jobs, leases) =>
      jobs.map((job) => {
        signals.set(job.owner, leases.of(job).signal);
        return (running.get(job.owner) as PromiseWithResolvers<JobOutcome>).promise;
      }),
    settings: { ...defaultSettings, leaseMs },
    onError: (step, error) => errors.push(`${step}: ${error}`),
    onDead: () => {},
    onFinished: () => {},
    pause: () => {},
    ...more,
  });
  const jobs = await described.claim(t.db, { limit: 100, leaseMs, worker: "test" });
  const ended = new Map(held.begin(jobs).map((end, index) => [(jobs[index] as Job).owner, end]));
  return Object.assign(t, {
    held,
    ended,
    errors,
    finish: (owner: string, outcome: JobOutcome) => running.get(owner)?.resolve(outcome),
    aborted: () => owners.filter((owner) => signals.get(owner)?.aborted),
    rows: async () =>
      (await t.db.query(`select owner, status, attempt_count as attempts from sample_jobs order by job_id`)).rows,
  });
}

test("a lost lease aborts its own job, and the others of the same claim go on", async () => {
  await using t = await setup(["a", "lost", "b"]);
  await t.db.query(`update sample_jobs set lease_epoch = lease_epoch + 1 where owner = 'lost'`);
  await t.held.renew();
  expect(t.aborted()).toEqual(["lost"]);
  for (const owner of ["a", "lost", "b"]) t.finish(owner, done);
  expect(await Promise.all(t.ended.values())).toEqual(["done", "leaseLost", "done"]);
  expect(await t.rows()).toEqual([{ owner: "lost", status: "RUNNING", attempts: 1 }]);
});

test("a stopping worker aborts every job and releases those that go on", async () => {
  await using t = await setup(["a", "b"]);
  await t.held.abandon(0);
  expect(t.aborted()).toEqual(["a", "b"]);
  expect(await t.rows()).toEqual(["a", "b"].map((owner) => ({ owner, status: "READY", attempts: 0 })));
  expect(t.held.size).toBe(0);
});

test("a job that its table does not let go keeps no other job from being released", async () => {
  await using t = await setup(["a", "in doubt", "b"]);
  await t.db.query(
    `alter table sample_jobs add constraint in_doubt_is_not_free check (owner <> 'in doubt' or status <> 'READY')`,
  );
  await t.held.abandon(0);
  expect(await t.rows()).toEqual([
    { owner: "a", status: "READY", attempts: 0 },
    { owner: "in doubt", status: "RUNNING", attempts: 1 },
    { owner: "b", status: "READY", attempts: 0 },
  ]);
  expect(t.errors).toEqual([expect.stringMatching(/^release: .*in_doubt_is_not_free/)]);
});

test("a database that is unavailable at the stop is reported once, not once for every job", async () => {
  const settle = () => Promise.reject(Object.assign(new Error("gone"), { code: "ECONNRESET" }));
  await using t = await setup(["a", "b", "c"], { claims: { ...described, settle } });
  await t.held.abandon(0);
  expect(t.errors).toEqual(["release: Error: gone"]);
});

/** Claims whose settlements fail so many times before they go through. */
function failing(times: number, error: Error): Claims<SampleJob> {
  let left = times;
  return {
    ...described,
    settle: (db, settlements) => (left-- > 0 ? Promise.reject(error) : described.settle(db, settlements)),
  };
}

test("a settlement that fails is tried again while the lease holds", async () => {
  const gone = Object.assign(new Error("gone"), { code: "ECONNRESET" });
  await using t = await setup(["a"], { claims: failing(2, gone) });
  t.finish("a", retry(60_000, "later"));
  expect(await t.ended.get("a")).toBe("retry");
  expect(t.errors).toEqual(["settle: Error: gone", "settle: Error: gone"]);
  expect(await t.rows()).toEqual([{ owner: "a", status: "READY", attempts: 1 }]);
});

test("a settlement that still fails when the lease is over is left to the next worker", async () => {
  const gone = Object.assign(new Error("gone"), { code: "ECONNRESET" });
  await using t = await setup(["a"], { claims: failing(Number.POSITIVE_INFINITY, gone), leaseMs: 1 });
  t.finish("a", done);
  expect(await t.ended.get("a")).toBe("leaseLost");
  expect(await t.rows()).toEqual([{ owner: "a", status: "RUNNING", attempts: 1 }]);
});

test("a renewed lease gives a failing settlement more time", async () => {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  const gone = Object.assign(new Error("gone"), { code: "ECONNRESET" });
  await using t = await setup(["a"], { claims: failing(1, gone), leaseMs: 600_000 });
  aheadMs = 500_000;
  await t.held.renew();
  aheadMs = 1_000_000; // Past the first lease, within the second.
  t.finish("a", done);
  expect(await t.ended.get("a")).toBe("done");
});

test("a job that the worker released on stopping can no longer settle", async () => {
  let settlements = 0;
  const counting: Claims<SampleJob> = {
    ...described,
    settle(db, all) {
      settlements += all.length;
      return described.settle(db, all);
    },
  };
  await using t = await setup(["a"], { claims: counting });
  await t.held.abandon(0);
  t.finish("a", done);
  expect(await t.ended.get("a")).toBe("leaseLost");
  expect(settlements).toBe(1); // The release.
  expect(await t.rows()).toEqual([{ owner: "a", status: "READY", attempts: 0 }]);
});

test("a job is reported as dead only if its worker still held it", async () => {
  const died: string[] = [];
  await using t = await setup(["mine", "lost"], { onDead: ({ owner }) => died.push(owner) });
  await t.db.query(`update sample_jobs set lease_epoch = lease_epoch + 1 where owner = 'lost'`);
  for (const owner of ["mine", "lost"]) t.finish(owner, dead("no"));
  expect(await Promise.all(t.ended.values())).toEqual(["dead", "leaseLost"]);
  expect(died).toEqual(["mine"]);
});
