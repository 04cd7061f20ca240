import { expect, test, vi } from "vitest";
import { type Claimed, type Claims, createClaims } from "../claims/index.ts";
import { testDatabase } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { type InFlightOptions, trackInFlightJobs } from "./in-flight-jobs.ts";
import { dead, defaultWorkerSettings, done, type JobOutcome, retry } from "./index.ts";

interface SampleJob {
  readonly owner: string;
}
type Job = Claimed<SampleJob>;

const claimsOfJobs = createClaims<SampleJob>(sampleJobs);

/** Sample jobs that are claimed and started. Only the test renews, settles or stops them. */
async function setup(
  owners: readonly string[],
  options: Partial<InFlightOptions<SampleJob>> & { leaseMs?: number } = {},
) {
  const t = await testDatabase({ tables: createSampleJobs });
  await t.db.query(`insert into sample_jobs (owner) select * from unnest($1::text[])`, [owners]);
  const { leaseMs = 60_000, ...more } = options;
  const errors: string[] = [];
  const running = new Map<string, PromiseWithResolvers<JobOutcome>>(
    owners.map((owner) => [owner, Promise.withResolvers()]),
  );
  const signals = new Map<string, AbortSignal>();
  const inFlight = trackInFlightJobs<SampleJob>({
    name: "test",
    db: t.db,
    claims: claimsOfJobs,
    run: (jobs, leases) =>
      jobs.map((job) => {
        signals.set(job.owner, leases.of(job).signal);
        return (running.get(job.owner) as PromiseWithResolvers<JobOutcome>).promise;
      }),
    settings: { ...defaultWorkerSettings, leaseMs },
    onError: (step, error) => errors.push(`${step}: ${error}`),
    onDead: () => {},
    onFinished: () => {},
    pause: () => {},
    ...more,
  });
  const jobs = await claimsOfJobs.claim(t.db, { limit: 100, leaseMs, worker: "test" });
  const results = new Map(inFlight.begin(jobs).map((result, index) => [(jobs[index] as Job).owner, result]));
  return Object.assign(t, {
    inFlight,
    results,
    errors,
    finish: (owner: string, outcome: JobOutcome) => running.get(owner)?.resolve(outcome),
    aborted: () => owners.filter((owner) => signals.get(owner)?.aborted),
    rows: async () =>
      (await t.db.query(`select owner, status, attempt_count as attempts from sample_jobs order by job_id`)).rows,
  });
}

test("a lost lease aborts its job and no other", async () => {
  await using t = await setup(["a", "lost", "b"]);
  await t.db.query(`update sample_jobs set lease_epoch = lease_epoch + 1 where owner = 'lost'`);
  await t.inFlight.renew();
  expect(t.aborted()).toEqual(["lost"]);
  for (const owner of ["a", "lost", "b"]) t.finish(owner, done);
  expect(await Promise.all(t.results.values())).toEqual(["done", "leaseLost", "done"]);
  expect(await t.rows()).toEqual([{ owner: "lost", status: "RUNNING", attempts: 1 }]);
});

test("a stopping worker aborts every job and releases those that do not finish", async () => {
  await using t = await setup(["a", "b"]);
  await t.inFlight.abandon(0);
  expect(t.aborted()).toEqual(["a", "b"]);
  expect(await t.rows()).toEqual(["a", "b"].map((owner) => ({ owner, status: "READY", attempts: 0 })));
  expect(t.inFlight.size).toBe(0);
});

test("a job that the table refuses to release does not block the release of others", async () => {
  await using t = await setup(["a", "unresolved", "b"]);
  await t.db.query(
    `alter table sample_jobs add constraint unresolved_is_not_ready check (owner <> 'unresolved' or status <> 'READY')`,
  );
  await t.inFlight.abandon(0);
  expect(await t.rows()).toEqual([
    { owner: "a", status: "READY", attempts: 0 },
    { owner: "unresolved", status: "RUNNING", attempts: 1 },
    { owner: "b", status: "READY", attempts: 0 },
  ]);
  expect(t.errors).toEqual([expect.stringMatching(/^release: .*unresolved_is_not_ready/)]);
});

test("an unavailable database is reported once at the stop, not once per job", async () => {
  const settle = () => Promise.reject(Object.assign(new Error("lost"), { code: "ECONNRESET" }));
  await using t = await setup(["a", "b", "c"], { claims: { ...claimsOfJobs, settle } });
  await t.inFlight.abandon(0);
  expect(t.errors).toEqual(["release: Error: lost"]);
});

/** Claims whose first settlements fail. */
function failing(times: number, error: Error): Claims<SampleJob> {
  let left = times;
  return {
    ...claimsOfJobs,
    settle: (db, settlements) => (left-- > 0 ? Promise.reject(error) : claimsOfJobs.settle(db, settlements)),
  };
}

test("a failed settlement is retried until the lease expires", async () => {
  const lost = Object.assign(new Error("lost"), { code: "ECONNRESET" });
  await using t = await setup(["a"], { claims: failing(2, lost) });
  t.finish("a", retry(60_000, "later"));
  expect(await t.results.get("a")).toBe("retry");
  expect(t.errors).toEqual(["settle: Error: lost", "settle: Error: lost"]);
  expect(await t.rows()).toEqual([{ owner: "a", status: "READY", attempts: 1 }]);
});

test("a settlement that still fails when the lease expires is dropped", async () => {
  const lost = Object.assign(new Error("lost"), { code: "ECONNRESET" });
  await using t = await setup(["a"], { claims: failing(Number.POSITIVE_INFINITY, lost), leaseMs: 1 });
  t.finish("a", done);
  expect(await t.results.get("a")).toBe("leaseLost");
  expect(await t.rows()).toEqual([{ owner: "a", status: "RUNNING", attempts: 1 }]);
});

test("a renewed lease gives a failing settlement more time", async () => {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  const lost = Object.assign(new Error("lost"), { code: "ECONNRESET" });
  await using t = await setup(["a"], { claims: failing(1, lost), leaseMs: 600_000 });
  aheadMs = 500_000;
  await t.inFlight.renew();
  aheadMs = 1_000_000; // Past the first lease, within the second.
  t.finish("a", done);
  expect(await t.results.get("a")).toBe("done");
});

test("a renewed lease is counted from the request, not from a late response", async () => {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  const lost = Object.assign(new Error("lost"), { code: "ECONNRESET" });
  const renew: typeof claimsOfJobs.renew = (...request) => {
    aheadMs = 500_000;
    return claimsOfJobs.renew(...request);
  };
  await using t = await setup(["a"], { claims: { ...failing(1, lost), renew }, leaseMs: 600_000 });
  await t.inFlight.renew();
  aheadMs = 1_000_000; // Within a lease that is counted from the response.
  t.finish("a", done);
  expect(await t.results.get("a")).toBe("leaseLost");
});

test("a job cannot settle after the worker has released it", async () => {
  let settlements = 0;
  const counting: Claims<SampleJob> = {
    ...claimsOfJobs,
    settle(db, all) {
      settlements += all.length;
      return claimsOfJobs.settle(db, all);
    },
  };
  await using t = await setup(["a"], { claims: counting });
  await t.inFlight.abandon(0);
  t.finish("a", done);
  expect(await t.results.get("a")).toBe("leaseLost");
  expect(settlements).toBe(1); // The release.
  expect(await t.rows()).toEqual([{ owner: "a", status: "READY", attempts: 0 }]);
});

test("a dead job is reported only if its lease was not lost", async () => {
  const deadJobs: string[] = [];
  await using t = await setup(["mine", "lost"], { onDead: ({ owner }) => deadJobs.push(owner) });
  await t.db.query(`update sample_jobs set lease_epoch = lease_epoch + 1 where owner = 'lost'`);
  for (const owner of ["mine", "lost"]) t.finish(owner, dead("no"));
  expect(await Promise.all(t.results.values())).toEqual(["dead", "leaseLost"]);
  expect(deadJobs).toEqual(["mine"]);
});
