import fc from "fast-check";
import { expect, test } from "vitest";
import { type Db, transaction } from "../db/index.ts";
import { openOutbox, outboxClaims } from "../outbox/index.ts";
import { fixedId, repetitions, testDatabase } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { dead, done, type Outcome, release, retry } from "../worker/index.ts";
import { createClaims } from "./index.ts";

const outbox = openOutbox();
let next = 1;

/** One event per name; events of one aggregate get rising versions. */
async function append(db: Db, ...aggregates: string[]): Promise<string[]> {
  const events = aggregates.map((aggregateKey) => ({
    eventId: fixedId(next++),
    eventType: "ThingHappened",
    subject: "thing.events",
    aggregateKey,
    version: next,
    payload: {},
  }));
  await transaction(db, (tx) => outbox.append(tx, ...events));
  return events.map((event) => event.eventId);
}

const many = (n: number) => Array.from({ length: n }, (_, i) => `aggregate-${i}`);
const claim = (db: Db, limit: number, leaseMs = 60_000) => outboxClaims.claim(db, { limit, leaseMs, worker: "test" });
const readStatuses = async (db: Db) =>
  (await db.query(`select status, attempt_count, last_error from outbox_events order by position`)).rows;

test("two concurrent claims never return the same row", async () => {
  await using t = await testDatabase();
  await append(t.db, ...many(100));
  const batches = await Promise.all(Array.from({ length: 8 }, () => claim(t.db, 20)));
  const ids = batches.flat().map((job) => job.eventId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBe(100);
});

test("a claim never exceeds its limit, whatever its plan", async () => {
  await using t = await testDatabase();
  await append(t.db, ...many(500));
  const plans = ["enable_nestloop", "enable_hashjoin", "enable_mergejoin", "enable_seqscan", "enable_material"];
  for (const off of ["", ...plans]) {
    const options = plans.map((plan) => `-c ${plan}=${plan === off ? "off" : "on"}`).join(" ");
    const db = t.open({ url: `${t.url}?options=${encodeURIComponent(options)}`, poolMax: 1 });
    expect((await claim(db, 10)).length).toBe(10);
  }
});

test("a worker cannot settle, renew or release a job after another worker has claimed it", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  const [slow] = await claim(t.db, 1, 0); // A lease of 0 ms expires at once.
  const [quick] = await claim(t.db, 1);
  if (!slow || !quick) throw new Error("nothing was claimed");
  expect(quick.eventId).toBe(slow.eventId);
  for (const outcome of [done, dead("no"), retry(0, "no"), release("no")]) {
    expect(await outboxClaims.settle(t.db, [{ claim: slow.claim, outcome }])).toEqual([false]);
  }
  expect(await outboxClaims.renew(t.db, [slow.claim], 1_000)).toEqual([false]);
  expect(await outboxClaims.renew(t.db, [quick.claim], 60_000)).toEqual([true]);
  expect(await outboxClaims.settle(t.db, [{ claim: quick.claim, outcome: done }])).toEqual([true]);
  expect(await outboxClaims.settle(t.db, [{ claim: quick.claim, outcome: done }])).toEqual([false]);
});

test("a claim counts the attempt, and a release uncounts it", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  const [job] = await claim(t.db, 1);
  if (!job) throw new Error("nothing was claimed");
  expect(job.claim.attempt).toBe(1);
  await outboxClaims.settle(t.db, [{ claim: job.claim, outcome: release("stopping") }]);
  const [again] = await claim(t.db, 1, 0);
  expect(again?.claim.attempt).toBe(1);
  const [third] = await claim(t.db, 1);
  expect(third?.claim.attempt).toBe(2);
});

test("a batch is settled in one statement, each row with its own outcome", async () => {
  await using t = await testDatabase();
  await append(t.db, "a", "b", "c", "d");
  const jobs = await claim(t.db, 10);
  const outcomes = [done, retry(60_000, "later\0"), dead("never \ud800"), release("not now")];
  const applied = await outboxClaims.settle(
    t.db,
    jobs.map((job, i) => ({ claim: job.claim, outcome: outcomes[i] ?? done })),
  );
  expect(applied).toEqual([true, true, true, true]);
  expect(await readStatuses(t.db)).toEqual([
    { status: "PUBLISHED", attempt_count: 1, last_error: null },
    { status: "PENDING", attempt_count: 1, last_error: "later\uFFFD" },
    { status: "FAILED", attempt_count: 1, last_error: "never \uFFFD" },
    { status: "PENDING", attempt_count: 0, last_error: "not now" },
  ]);
  const again = await claim(t.db, 10);
  expect(again.map((job) => job.aggregateKey)).toEqual(["d"]);
  await outboxClaims.settle(
    t.db,
    again.map(({ claim }) => ({ claim, outcome: done })),
  );
  expect((await readStatuses(t.db)).at(-1)).toEqual({ status: "PUBLISHED", attempt_count: 1, last_error: null });
});

test("a row that fails first and then succeeds has no error", async () => {
  await using t = await testDatabase();
  await append(t.db, "a");
  const settle = async (outcome: Outcome) => {
    const [job] = await claim(t.db, 1);
    if (job) await outboxClaims.settle(t.db, [{ claim: job.claim, outcome }]);
    return readStatuses(t.db);
  };
  expect(await settle(retry(0, "no answer"))).toMatchObject([{ status: "PENDING", last_error: "no answer" }]);
  expect(await settle(dead("refused"))).toMatchObject([{ status: "FAILED", last_error: "refused" }]);
  await outboxClaims.redrive(t.db, [fixedId(next - 1)], { by: "aki", reason: "fixed" });
  expect(await settle(done)).toMatchObject([{ status: "PUBLISHED", last_error: null }]);
});

test("rows of one aggregate are claimed in order, by one worker only", async () => {
  await using t = await testDatabase();
  const ids = await append(t.db, "a", "a", "b", "a");
  const first = await claim(t.db, 2);
  expect(first.map((job) => job.eventId)).toEqual(ids.slice(0, 2));
  expect((await claim(t.db, 10)).map((job) => job.eventId)).toEqual([ids[2]]); // the third a waits for the first two
  await outboxClaims.settle(
    t.db,
    first.map(({ claim }) => ({ claim, outcome: done })),
  );
  expect((await claim(t.db, 10)).map((job) => job.eventId)).toEqual([ids[3]]);
});

test("a dead row parks its aggregate and no other until it is redriven", async () => {
  await using t = await testDatabase();
  const ids = await append(t.db, "a", "b", "a", "a");
  const jobs = await claim(t.db, 2);
  await outboxClaims.settle(
    t.db,
    jobs.map(({ claim, aggregateKey }) => ({
      claim,
      outcome: aggregateKey === "a" ? dead("poison") : done,
    })),
  );
  expect(await claim(t.db, 10)).toEqual([]);
  const others = await append(t.db, ...many(300));
  expect((await claim(t.db, 300)).length).toBe(others.length);
  expect(await outboxClaims.redrive(t.db, [ids[0] ?? ""], { by: "aki", reason: "fixed" })).toEqual([ids[0]]);
  expect((await claim(t.db, 10)).map((job) => job.eventId)).toEqual([ids[0], ids[2], ids[3]]);
});

test("thousands of blocked rows do not hide the rows of other aggregates", async () => {
  await using t = await testDatabase();
  const [poison, late] = await append(t.db, "poison", "late");
  await append(t.db, ...Array.from({ length: 2_000 }, (_, i) => (i % 2 ? "poison" : "late")));
  const jobs = await claim(t.db, 2);
  await outboxClaims.settle(
    t.db,
    jobs.map(({ claim, eventId }) => ({
      claim,
      outcome: eventId === poison ? dead("no") : retry(60_000, "later"),
    })),
  );
  expect(jobs.map((job) => job.eventId)).toEqual([poison, late]);
  await append(t.db, "healthy");
  expect((await claim(t.db, 50)).map((job) => job.aggregateKey)).toEqual(["healthy"]);
});

test("rows of one aggregate are done in order and once, in any sequence of claims and settlements", async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("append" as const), aggregate: fc.constantFrom("a", "b", "c") }),
    fc.record({
      do: fc.constant("claim" as const),
      limit: fc.integer({ min: 1, max: 4 }),
      leaseMs: fc.constantFrom(0, 60_000),
    }),
    fc.record({ do: fc.constant("settle" as const), pick: fc.nat(), as: fc.constantFrom("done", "retry", "release") }),
  );
  await using t = await testDatabase();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      await t.db.query("truncate outbox_events");
      const held: Awaited<ReturnType<typeof claim>> = [];
      for (const each of steps) {
        if (each.do === "append") await append(t.db, each.aggregate);
        else if (each.do === "claim") held.push(...(await claim(t.db, each.limit, each.leaseMs)));
        else {
          const [job] = held.splice(each.pick % Math.max(held.length, 1), 1);
          if (!job) continue;
          const ofAggregate = held.filter((other) => other.aggregateKey === job.aggregateKey);
          const before = ofAggregate.some((other) => other.eventId < job.eventId);
          if (before) continue; // As after a crash: its lease expires, or it stays claimed.
          // As a worker does: behind a job that is not done, the rest of its aggregate is released.
          const outcome = each.as === "done" ? done : each.as === "retry" ? retry(0, "again") : release("not tried");
          const behind = outcome === done ? [] : ofAggregate;
          for (const other of behind) held.splice(held.indexOf(other), 1);
          const rest = behind.map(({ claim }) => ({ claim, outcome: release("behind another") }));
          await outboxClaims.settle(t.db, [{ claim: job.claim, outcome }, ...rest]);
        }
        const { rows } = await t.db.query(
          `select late.event_id from outbox_events early join outbox_events late using (aggregate_key)
            where early.position < late.position and early.status <> 'PUBLISHED' and late.status = 'PUBLISHED'`,
        );
        expect(rows).toEqual([]);
      }
    }),
    { numRuns: repetitions(60) },
  );
});

test("a recent claim skips rows that were due earlier and rows with expired leases", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  const byOwner = createClaims<{ owner: string }>({ ...sampleJobs, queue: "owner" });
  const claimKeys = async (owner: string, dueWithinMs?: number, leaseMs = 60_000) => {
    const request = {
      limit: 10,
      leaseMs,
      worker: "test",
      queue: owner,
      ...(dueWithinMs !== undefined && { dueWithinMs }),
    };
    return (await byOwner.claim(t.db, request)).map(({ claim }) => claim.key);
  };
  await t.db.query(`insert into sample_jobs (owner, next_retry_at) values
    ('a', now() - interval '1 hour'), ('a', now()), ('a', now() + interval '1 hour'), ('b', now())`);
  const dueWithinMs = 600_000;
  expect(await claimKeys("a", dueWithinMs, 0)).toEqual(["2"]); // Its lease expires at once.
  expect(await claimKeys("a", dueWithinMs)).toEqual([]);
  expect((await claimKeys("a")).sort()).toEqual(["1", "2"]);
  expect(await claimKeys("b", dueWithinMs)).toEqual(["4"]);
});

test("a table without a done state deletes done rows, and only under the current claim", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  const inOrder = createClaims<{ owner: string }>({ ...sampleJobs, order: { aggregate: "owner", position: "job_id" } });
  const left = async () =>
    (await t.db.query(`select owner, status, attempt_count from sample_jobs order by job_id`)).rows.map((row) =>
      Object.values(row).join(" "),
    );
  await t.db.query(`insert into sample_jobs (owner) select unnest(array['a', 'b', 'c', 'd', 'a'])`);
  const claimAll = (leaseMs: number) => inOrder.claim(t.db, { limit: 4, leaseMs, worker: "test" });
  const late = await claimAll(0);
  const held = await claimAll(60_000);
  expect(
    await inOrder.settle(
      t.db,
      late.map(({ claim }) => ({ claim, outcome: done })),
    ),
  ).toEqual(late.map(() => false));
  expect(await left()).toEqual(["a RUNNING 2", "b RUNNING 2", "c RUNNING 2", "d RUNNING 2", "a READY 0"]);
  const outcomes = [done, retry(60_000, "not now"), dead("never"), release("another may")];
  const settlements = held.map(({ claim }, index) => ({ claim, outcome: outcomes[index] ?? done }));
  expect(await inOrder.settle(t.db, settlements)).toEqual([true, true, true, true]);
  expect(await left()).toEqual(["b READY 2", "c DEAD 2", "d READY 1", "a READY 0"]);
  expect((await claimAll(60_000)).map(({ owner }) => owner)).toEqual(["d", "a"]); // The first row of a is deleted, so the second is due.
});

test("expired leases and ready rows together do not exceed the limit", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  const inOrder = { ...sampleJobs, order: { aggregate: "owner", position: "job_id" } };
  for (const table of [sampleJobs, inOrder]) {
    await t.db.query(
      `truncate sample_jobs; insert into sample_jobs (owner) select 'owner ' || n from generate_series(1, 10) n`,
    );
    const { claim } = createClaims<{ owner: string }>(table);
    const db = t.open(); // Statements are prepared under the name of the table, so each spec needs its own sessions.
    const claimRows = (limit: number, leaseMs: number) => claim(db, { limit, leaseMs, worker: "test" });
    expect((await claimRows(3, 0)).length).toBe(3);
    expect((await claimRows(5, 60_000)).length).toBe(5);
    expect((await claimRows(10, 60_000)).length).toBe(5);
  }
});

test("a redrive resets the attempts of dead rows only and is recorded", async () => {
  await using t = await testDatabase();
  const ids = await append(t.db, "dead", "done", "held", "waiting");
  const held = await claim(t.db, 4);
  const outcomes = [dead("poison"), done, undefined, retry(60_000, "later")];
  const settlements = held.flatMap(({ claim }, index) => {
    const outcome = outcomes[index];
    return outcome ? [{ claim, outcome }] : [];
  });
  await outboxClaims.settle(t.db, settlements);
  const before = await readStatuses(t.db);
  expect(await outboxClaims.redrive(t.db, ids, { by: "aki", reason: "fixed" })).toEqual([ids[0]]);
  expect(await readStatuses(t.db)).toEqual([{ ...before[0], status: "PENDING", attempt_count: 0 }, ...before.slice(1)]);
  const { rows } = await t.db.query(`select of_key, redriven_by, reason, attempt_count, last_error from redrives`);
  const record = { redriven_by: "aki", reason: "fixed", attempt_count: 1, last_error: "poison" };
  expect(rows).toEqual([{ of_key: ids[0], ...record }]);
  expect(await outboxClaims.redrive(t.db, ids, { by: "aki", reason: "again" })).toEqual([]);
});

test("a release delays a row of an unordered table, and not of an ordered one", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  const inOrder = { ...sampleJobs, order: { aggregate: "owner", position: "job_id" } };
  const claimableAfterRelease = async (table: typeof sampleJobs) => {
    await t.db.query(`truncate sample_jobs; insert into sample_jobs default values`);
    const { claim, settle } = createClaims<{ owner: string }>(table);
    const db = t.open();
    const claimRow = () => claim(db, { limit: 1, leaseMs: 60_000, worker: "test" });
    const settlements = (await claimRow()).map((job) => ({ claim: job.claim, outcome: release("not now", 3_600_000) }));
    expect(await settle(db, settlements)).toEqual([true]);
    return (await claimRow()).length;
  };
  expect(await claimableAfterRelease(sampleJobs)).toBe(0);
  expect(await claimableAfterRelease(inOrder)).toBe(1);
});

test("a row that another claim has locked blocks the rows behind it", async () => {
  await using t = await testDatabase();
  const ids = await append(t.db, "a", "a", "b");
  const other = await t.db.connect();
  // As an uncommitted claim does: the row still looks ready and is locked.
  await other.query(`begin`);
  await other.query(`select from outbox_events where event_id = $1 for update`, [ids[0]]);
  const claimed = await claim(t.db, 10).finally(() => other.release(true));
  expect(claimed.map((job) => job.eventId)).toEqual([ids[2]]);
});

test("a row does not wait for rows of its aggregate in another queue", async () => {
  await using t = await testDatabase();
  const [first, second] = await append(t.db, "a", "a");
  await t.db.query(`update outbox_events set subject = 'other.events' where event_id = $1`, [first]);
  const { claim } = createClaims({ ...outboxClaims.table, queue: "subject" });
  const claimed = await claim(t.db, { limit: 10, leaseMs: 60_000, worker: "test", queue: "thing.events" });
  expect(claimed.map((job) => job.claim.key)).toEqual([second]);
});
