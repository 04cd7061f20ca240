import { expect, test } from "vitest";
import type { Claimed } from "../claims/index.ts";
import { outboxClaims } from "../outbox/index.ts";
import { problem } from "../problem/index.ts";
import { testDatabase, until } from "../testing/index.ts";
import { done, type JobOutcome, retry } from "./index.ts";
import { appendEvents, outboxWorker, readStatuses } from "./testing.ts";

test("runOnce returns the number of jobs with each result", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "good", "slow", "bad", "broken");
  const refused = problem(422, "refused", "Refused");
  const w = outboxWorker(t.db, async ({ aggregateKey }) => {
    if (aggregateKey === "slow") return retry(60_000, "later");
    if (aggregateKey === "bad") throw refused("never");
    if (aggregateKey === "broken") throw new Error("a bug", { cause: new Error("its cause") });
    return done;
  });
  expect(await w.runOnce()).toEqual({ claimed: 4, done: 1, retry: 2, dead: 1, release: 0, settled: 0, leaseLost: 0 });
  const { rows } = await t.db.query(`select status, last_error from outbox_events order by position`);
  expect(rows.map((row) => row.last_error)).toEqual([
    null,
    "later",
    "refused: never",
    "Error: a bug; because Error: its cause",
  ]);
});

test("a job that always fails is dead after its attempts, with its last error", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a");
  let attempts = 0;
  const failing = async () => {
    attempts++;
    return retry(0, "still no");
  };
  const errors: string[] = [];
  const onError = (error: unknown) => errors.push(String(error));
  const w = outboxWorker(t.db, failing, { settings: { attemptsMax: 3 }, onError });
  for (let i = 0; i < 5; i++) await w.runOnce();
  expect(attempts).toBe(3);
  expect(errors).toEqual([
    expect.stringMatching(/^Error: test: job [0-9a-f-]{36} is dead: failed after 3 attempts: still no$/),
  ]);
  expect((await t.db.query(`select status, last_error from outbox_events`)).rows).toEqual([
    { status: "FAILED", last_error: "failed after 3 attempts: still no" },
  ]);
});

test("a job whose worker crashes every time is dead and is not run again", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a");
  for (let i = 0; i < 3; i++) await outboxClaims.claim(t.db, { limit: 1, leaseMs: 0, worker: "died" });
  let runs = 0;
  const counting = async () => {
    runs++;
    return done;
  };
  const w = outboxWorker(t.db, counting, { settings: { attemptsMax: 3 } });
  expect(await w.runOnce()).toMatchObject({ dead: 1 });
  expect(runs).toBe(0);
});

test("a started worker runs present and later jobs, at most `concurrency` at once", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, ...Array.from({ length: 300 }, (_, i) => `a${i}`));
  let running = 0;
  let most = 0;
  await using w = outboxWorker(
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
  await until("all are published", async () => (await readStatuses(t.db)).every((status) => status === "PUBLISHED"));
  await appendEvents(t.db, "late");
  await until("the late one is published", async () =>
    (await readStatuses(t.db)).every((status) => status === "PUBLISHED"),
  );
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(40);
});

test("a job can settle its own row, and the worker returns when it is due", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "mine", "lost");
  const settleOwnRow = async (job: Claimed<{ aggregateKey: string }>): Promise<JobOutcome> => {
    if (job.aggregateKey === "lost") return { kind: "settled", applied: false };
    const isFirst = job.claim.attempt === 1;
    await t.db.query(
      `update outbox_events set status = $3, lease_until = null, last_error = 'by the job', next_retry_at = clock_timestamp(),
              published_at = case when $3 = 'PUBLISHED' then now() end
        where event_id = $1 and lease_epoch = $2`,
      [job.claim.key, job.claim.epoch, isFirst ? "PENDING" : "PUBLISHED"],
    );
    return { kind: "settled", applied: true, ...(isFirst && { delayMs: 1 }) };
  };
  await using w = outboxWorker(t.db, settleOwnRow, { settings: { pollMs: 600_000, attemptsMax: 1_000 } });
  expect(await w.runOnce()).toMatchObject({ claimed: 2, settled: 1, leaseLost: 1, done: 0 });
  const rows = async () =>
    (await t.db.query(`select aggregate_key, status, attempt_count, last_error from outbox_events order by position`))
      .rows;
  expect(await rows()).toEqual([
    { aggregate_key: "mine", status: "PENDING", attempt_count: 1, last_error: "by the job" },
    { aggregate_key: "lost", status: "IN_FLIGHT", attempt_count: 1, last_error: null },
  ]);
  w.start();
  await until("it has settled its row as published", async () => (await readStatuses(t.db))[0] === "PUBLISHED");
  await w.stop();
  expect(await rows()).toMatchObject([{ attempt_count: 2, last_error: "by the job" }, { status: "IN_FLIGHT" }]);
});

test("a worker survives an unavailable database and continues afterwards", async () => {
  await using t = await testDatabase();
  const db = t.open();
  // A row whose claim was lost with its connection is claimable when its lease expires.
  await using w = outboxWorker(db, async () => done, { settings: { pollMs: 10, leaseMs: 3_000 } });
  w.start();
  for (let i = 0; i < 5; i++) {
    await appendEvents(t.db, `a${i}`);
    await t.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
  }
  await until("all are published", async () => {
    const all = await readStatuses(t.db).catch(() => ["?"]);
    return all.length === 5 && all.every((status) => status === "PUBLISHED");
  });
});
