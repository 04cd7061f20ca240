import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { type Claimed, claims } from "../claims/index.ts";
import { type Db, transaction } from "../db/index.ts";
import { openOutbox, outboxClaims } from "../outbox/index.ts";
import { problem } from "../problem/index.ts";
import { testDatabase, until } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import {
  backoffMs,
  done,
  type JobOutcome,
  type Outcome,
  openWakeups,
  retry,
  type WorkerOptions,
  worker,
} from "./index.ts";

type Row = Parameters<Parameters<typeof worker>[0]["run"]>[0][number] & { aggregateKey: string };
const outbox = openOutbox();

async function append(db: Db, ...aggregates: string[]) {
  const events = aggregates.map((aggregateKey) => ({
    eventType: "T",
    subject: "t.events",
    aggregateKey,
    version: 1,
    payload: {},
  }));
  await transaction(db, (tx) => outbox.append(tx, ...events));
}

function workerOn(
  db: Db,
  run: (job: Claimed<{ aggregateKey: string }>, signal: AbortSignal) => Promise<JobOutcome>,
  options: Partial<WorkerOptions<Row>> = {},
) {
  return worker({
    name: "test",
    db,
    claims: outboxClaims,
    run: (jobs, leases) => jobs.map((job) => run(job, leases.of(job).signal)),
    settings: { pollMs: 20, ...options.settings },
    ...(options.wakeups && { wakeups: options.wakeups }),
    ...(options.topic && { topic: options.topic }),
    ...(options.onError && { onError: options.onError }),
  });
}

const statuses = async (db: Db) =>
  (await db.query<{ status: string }>(`select status from outbox_events order by position`)).rows.map(
    (row) => row.status,
  );

test("a round tells what became of each job", async () => {
  await using t = await testDatabase();
  await append(t.db, "good", "slow", "bad", "broken");
  const refused = problem({ code: "refused", status: 422, title: "Refused" });
  const w = workerOn(t.db, async ({ aggregateKey }) => {
    if (aggregateKey === "slow") return retry(60_000, "later");
    if (aggregateKey === "bad") throw refused("for good");
    if (aggregateKey === "broken") throw new Error("who knows", { cause: new Error("deep down") });
    return done;
  });
  expect(await w.runOnce()).toEqual({ claimed: 4, done: 1, retry: 2, dead: 1, release: 0, settled: 0, leaseLost: 0 });
  const { rows } = await t.db.query(`select status, last_error from outbox_events order by position`);
  expect(rows.map((row) => row.last_error)).toEqual([
    null,
    "later",
    "refused: for good",
    "Error: who knows; because Error: deep down",
  ]);
});

test("work that fails again and again is given up after its attempts, with its last error", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  let tries = 0;
  const failing = async () => {
    tries++;
    return retry(0, "still no");
  };
  const told: string[] = [];
  const onError = (error: unknown) => told.push(String(error));
  const w = workerOn(t.db, failing, { settings: { attemptsMax: 3 }, onError });
  for (let i = 0; i < 5; i++) await w.runOnce();
  expect(tries).toBe(3);
  expect(told).toEqual([
    expect.stringMatching(/^Error: test: gave up [0-9a-f-]{36}: gave up after 3 attempts: still no$/),
  ]);
  expect((await t.db.query(`select status, last_error from outbox_events`)).rows).toEqual([
    { status: "FAILED", last_error: "gave up after 3 attempts: still no" },
  ]);
});

test("work whose worker dies every time is given up too, without being run once more", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  for (let i = 0; i < 3; i++) await outboxClaims.claim(t.db, { limit: 1, leaseMs: 0, worker: "died" });
  let runs = 0;
  const counting = async () => {
    runs++;
    return done;
  };
  const w = workerOn(t.db, counting, { settings: { attemptsMax: 3 } });
  expect(await w.runOnce()).toMatchObject({ dead: 1 });
  expect(runs).toBe(0);
});

test("a started worker drains what is there and what comes later, several jobs at a time and never more", async () => {
  await using t = await testDatabase();
  await append(t.db, ...Array.from({ length: 300 }, (_, i) => `a${i}`));
  let running = 0;
  let most = 0;
  await using w = workerOn(
    t.db,
    async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return done;
    },
    { settings: { batchMax: 20, concurrency: 40, pollMs: 10 } },
  );
  w.start();
  await until("all are published", async () => (await statuses(t.db)).every((status) => status === "PUBLISHED"));
  await append(t.db, "late");
  await until("the late one is too", async () => (await statuses(t.db)).every((status) => status === "PUBLISHED"));
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(40);
});

test("a worker whose jobs take long claims no more of them than it has room for", async () => {
  await using t = await testDatabase();
  await append(t.db, ...Array.from({ length: 60 }, (_, i) => `a${i}`));
  const finish = Promise.withResolvers<Outcome>();
  let running = 0;
  const run = () => {
    running++;
    return finish.promise;
  };
  await using w = workerOn(t.db, run, { settings: { batchMax: 20, concurrency: 30, pollMs: 10 } });
  w.start();
  try {
    await until("it has claimed twice", () => running > 20);
    expect(running).toBe(30);
  } finally {
    finish.resolve(done);
  }
});

test("a signal after the commit, of this process or another, is heard long before the poll", async () => {
  await using t = await testDatabase();
  await using here = openWakeups({ url: t.url });
  await using elsewhere = openWakeups({ url: t.url });
  await Promise.all([here.listening, elsewhere.listening]);
  await using w = workerOn(t.db, async () => done, {
    settings: { pollMs: 600_000 },
    wakeups: here,
    topic: "app.outbox",
  });
  w.start();
  for (const wakeups of [here, elsewhere]) {
    const signalling = openOutbox({ wakeups, topic: "app.outbox" });
    await transaction(t.db, (tx) =>
      signalling.append(tx, { eventType: "T", subject: "t.events", aggregateKey: "a", version: 1, payload: {} }),
    );
    await until("it is published", async () => (await statuses(t.db)).every((status) => status === "PUBLISHED"));
  }
});

test("what is to be tried again soon is, and does not wait for the poll", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  const run = async ({ claim }: Claimed<object>) => (claim.attempt === 1 ? retry(50.9, "not yet") : done);
  await using w = workerOn(t.db, run, { settings: { pollMs: 600_000 } });
  w.start();
  await until("it was tried again", async () => (await statuses(t.db))[0] === "PUBLISHED");
});

test("a worker that has done all there was still finds what comes due in the past, and what a dead one held", async () => {
  await using t = await testDatabase();
  await t.db.query(createSampleJobs);
  const described = claims<object>(sampleJobs);
  const dueWithinMs: (number | undefined)[] = [];
  const watched: typeof described = {
    ...described,
    claim(db, request) {
      dueWithinMs.push(request.dueWithinMs);
      return described.claim(db, request);
    },
  };
  const run = (jobs: readonly unknown[]) => jobs.map(async () => done);
  await using w = worker({
    name: "test",
    db: t.db,
    claims: watched,
    run,
    settings: { pollMs: 1_000, leaseMs: 60_000 },
  });
  w.start();
  const areGone = async () => (await t.db.query(`select from sample_jobs`)).rowCount === 0;
  for (let n = 0; n < 20; n++) {
    await t.db.query(`insert into sample_jobs default values`);
    w.wake();
    await until("it is done", areGone);
  }
  expect(dueWithinMs[0]).toBeUndefined();
  expect(dueWithinMs.filter((ms) => ms !== undefined).length).toBeGreaterThan(5);
  await t.db.query(`insert into sample_jobs (next_retry_at) values (now() - interval '1 hour')`);
  await t.db.query(
    `insert into sample_jobs (status, lease_epoch, lease_until) values ('RUNNING', 1, now() - interval '1 s')`,
  );
  w.wake();
  await until("they are done too", areGone);
});

test("complete claims that take long are made seldom, and still ten times in a lease", async () => {
  await using t = await testDatabase();
  await t.db.query(createSampleJobs);
  const described = claims<object>(sampleJobs);
  const tookMs = 400;
  const leaseMs = 5_000;
  const completeAt: number[] = [];
  const slow: typeof described = {
    ...described,
    async claim(db, request) {
      if (request.dueWithinMs !== undefined) return described.claim(db, request);
      await sleep(tookMs); // As over millions of entries of finished rows, which an open transaction keeps.
      completeAt.push(performance.now());
      return described.claim(db, request);
    },
  };
  const run = (jobs: readonly unknown[]) => jobs.map(async () => done);
  await using w = worker({ name: "test", db: t.db, claims: slow, run, settings: { pollMs: 20, leaseMs } });
  w.start();
  await until("it has asked for everything four times", () => completeAt.length >= 4);
  const waits = completeAt.slice(1).map((at, place) => at - (completeAt[place] ?? 0) - tookMs);
  // The poll alone would ask every 10 ms, and a tenth of the time would be every 3600.
  for (const ms of waits) expect(ms).toBeGreaterThan((leaseMs / 10) * 0.9);
  expect(Math.min(...waits)).toBeLessThan(9 * tookMs - 100);
});

test("the wake-up connection comes back by itself, and wakes everybody for what was missed", async () => {
  await using t = await testDatabase();
  await using wakeups = openWakeups({ url: t.url });
  let woken = 0;
  wakeups.on("topic", () => woken++);
  await wakeups.listening;
  const before = woken;
  await t.db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'todoke wakeups' and datname = current_database()`,
  );
  await until("it has reconnected", () => woken > before);
});

test("a worker that is told to stop as it starts does not wait for its next poll", async () => {
  await using t = await testDatabase();
  const worker = workerOn(t.db, async () => done, { settings: { pollMs: 600_000 } });
  worker.start();
  await worker[Symbol.asyncDispose]();
});

test("work that takes longer than its lease keeps it by renewal", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  const finish = Promise.withResolvers<Outcome>();
  let starts = 0;
  const leaseMs = 6_000; // A busy machine may stand still for seconds, and the lease is renewed every two.
  const settings = { leaseMs, pollMs: 20 };
  const slow = () => {
    starts++;
    return finish.promise;
  };
  await using one = workerOn(t.db, slow, { settings });
  await using two = workerOn(t.db, slow, { settings });
  one.start();
  two.start();
  const lease = async () => (await t.db.query(`select lease_epoch, lease_until from outbox_events`)).rows[0];
  await until("it is claimed", async () => (await lease()).lease_epoch === 1n);
  const given = (await lease()).lease_until;
  await until(
    "it has been held for longer than its lease",
    async () => (await lease()).lease_until - given > leaseMs + 1_000,
  );
  finish.resolve(done);
  await until("it is done", async () => (await statuses(t.db))[0] === "PUBLISHED");
  expect(starts).toBe(1);
});

test("a worker that lost its lease is told, and what it says afterwards does not count", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  const begun = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<Outcome>();
  await using w = workerOn(
    t.db,
    (_, signal) => {
      signal.addEventListener("abort", () => told.resolve());
      begun.resolve();
      return finish.promise;
    },
    { settings: { leaseMs: 1_500 } },
  );
  w.start();
  await begun.promise; // That the row is claimed is not enough: an answer that takes longer than the lease is dropped.
  // Another worker has it now, as after a stall of this one.
  await t.db.query(
    `update outbox_events set lease_epoch = lease_epoch + 1, lease_until = now() + interval '1 hour', locked_by = 'other'`,
  );
  await told.promise;
  finish.resolve(retry(0, "too late"));
  await w.stop();
  expect((await t.db.query(`select status, locked_by, last_error from outbox_events`)).rows).toEqual([
    { status: "IN_FLIGHT", locked_by: "other", last_error: null },
  ]);
});

test("a job may settle its row itself: the worker writes nothing more, and comes back when the row is due", async () => {
  await using t = await testDatabase();
  await append(t.db, "mine", "lost");
  const settleMyself = async (job: Claimed<{ aggregateKey: string }>): Promise<JobOutcome> => {
    if (job.aggregateKey === "lost") return { kind: "settled", won: false };
    const again = job.claim.attempt === 1;
    await t.db.query(
      `update outbox_events set status = $3, lease_until = null, last_error = 'by the job', next_retry_at = clock_timestamp(),
              published_at = case when $3 = 'PUBLISHED' then now() end
        where event_id = $1 and lease_epoch = $2`,
      [job.claim.key, job.claim.epoch, again ? "PENDING" : "PUBLISHED"],
    );
    return { kind: "settled", won: true, ...(again && { inMs: 1 }) };
  };
  await using w = workerOn(t.db, settleMyself, { settings: { pollMs: 600_000, attemptsMax: 1_000 } });
  expect(await w.runOnce()).toMatchObject({ claimed: 2, settled: 1, leaseLost: 1, done: 0 });
  const rows = async () =>
    (await t.db.query(`select aggregate_key, status, attempt_count, last_error from outbox_events order by position`))
      .rows;
  expect(await rows()).toEqual([
    { aggregate_key: "mine", status: "PENDING", attempt_count: 1, last_error: "by the job" },
    { aggregate_key: "lost", status: "IN_FLIGHT", attempt_count: 1, last_error: null },
  ]);
  w.start();
  await until("it has settled itself for good", async () => (await statuses(t.db))[0] === "PUBLISHED");
  await w.stop();
  expect(await rows()).toMatchObject([{ attempt_count: 2, last_error: "by the job" }, { status: "IN_FLIGHT" }]);
});

test("a stop finishes what runs and gives the rest back, so that another worker has it at once", async () => {
  await using t = await testDatabase();
  await append(t.db, "quick", "endless");
  const quick = Promise.withResolvers<Outcome>();
  const w = workerOn(t.db, ({ aggregateKey }) => (aggregateKey === "quick" ? quick.promise : new Promise(() => {})), {
    settings: { drainMs: 5_000 }, // A database that stands still for seconds must not make it give up what is quick.
  });
  w.start();
  await until("both are claimed", async () => (await statuses(t.db)).every((status) => status === "IN_FLIGHT"));
  const stopped = w.stop();
  quick.resolve(done);
  await stopped;
  const { rows } = await t.db.query(`select aggregate_key, status, attempt_count from outbox_events order by position`);
  expect(rows).toEqual([
    { aggregate_key: "quick", status: "PUBLISHED", attempt_count: 1 },
    { aggregate_key: "endless", status: "PENDING", attempt_count: 0 },
  ]);
});

test("a worker outlives a database that goes away, and goes on when it is back", async () => {
  await using t = await testDatabase();
  const db = t.open();
  // What was claimed by a connection that did not live to say so comes back with its lease.
  await using w = workerOn(db, async () => done, { settings: { pollMs: 10, leaseMs: 3_000 } });
  w.start();
  for (let i = 0; i < 5; i++) {
    await append(t.db, `a${i}`);
    await t.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
  }
  await until("all are published", async () => {
    const all = await statuses(t.db).catch(() => ["?"]);
    return all.length === 5 && all.every((status) => status === "PUBLISHED");
  });
});

test("the backoff doubles from its base to its cap, and spreads by half either way", () => {
  const at = (attempt: number, random: number) => backoffMs(attempt, { baseMs: 1_000, capMs: 60_000 }, () => random);
  expect([1, 2, 3, 6, 50].map((attempt) => at(attempt, 0.5))).toEqual([2_000, 4_000, 8_000, 60_000, 60_000]);
  expect([at(1, 0), at(1, 1)]).toEqual([1_000, 3_000]);
});

test("a claim whose result takes longer than the lease is dropped: another worker may hold the rows by then", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
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
  const w = worker({ name: "test", db: t.db, claims: stalling, run, settings: { leaseMs: 30_000 } });
  expect(await w.runOnce()).toMatchObject({ claimed: 0 });
  expect(runs).toBe(0);
});

test("while a stop waits for running jobs their leases are renewed, and nobody aborts them", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  let renewals = 0;
  const counting: typeof outboxClaims = {
    ...outboxClaims,
    renew(db, held, leaseMs) {
      if (held.length > 0) renewals++;
      return outboxClaims.renew(db, held, leaseMs);
    },
  };
  const begun = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<Outcome>();
  let signal: AbortSignal | undefined;
  const settings = { leaseMs: 1_500, pollMs: 10, drainMs: 60_000 };
  const w = worker({
    name: "test",
    db: t.db,
    claims: counting,
    run: (jobs, leases) =>
      jobs.map((job) => {
        signal = leases.of(job).signal;
        begun.resolve();
        return finish.promise;
      }),
    settings,
  });
  w.start();
  await begun.promise;
  const stopped = w.stop();
  const before = renewals;
  await until("it is renewed during the stop", () => renewals > before);
  expect(signal?.aborted).toBe(false);
  finish.resolve(done);
  await stopped;
  expect(await statuses(t.db)).toEqual(["PUBLISHED"]);
});
