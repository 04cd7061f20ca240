import { expect, test } from "vitest";
import type { Db, Tx } from "../db/index.ts";
import { completeEvents, outboxClaims } from "../outbox/store.ts";
import { testDatabase, until } from "../testing/index.ts";
import { createDirectWorker, done, type JobOutcome, openWakeups } from "./index.ts";
import { appendEvents, readStatuses } from "./testing.ts";

interface Options {
  readonly runInTransaction?: (tx: Tx, keys: readonly string[]) => Promise<void>;
  readonly runClaimed?: (key: string) => Promise<JobOutcome>;
}

/** A direct worker on the outbox that records how each event ran. */
function directWorker(db: Db, options: Options = {}) {
  const { runInTransaction = async () => {}, runClaimed = async () => done } = options;
  const ran = { direct: [] as string[], claimed: [] as string[], errors: [] as unknown[] };
  const worker = createDirectWorker({
    db,
    complete: completeEvents,
    batchMax: 100,
    async runInTransaction(tx, events) {
      const keys = events.map(({ aggregateKey }) => aggregateKey);
      await runInTransaction(tx, keys);
      ran.direct.push(...keys);
    },
    claimed: {
      name: "test",
      db,
      claims: outboxClaims,
      run: (jobs) =>
        jobs.map((job) => {
          ran.claimed.push(job.aggregateKey);
          return runClaimed(job.aggregateKey);
        }),
      settings: { pollMs: 50, backoff: { baseMs: 0, capMs: 0 }, attemptsMax: 3 },
      onError: (error) => ran.errors.push(error),
    },
  });
  return { ...ran, worker };
}

const statuses = (db: Db) => readStatuses(db).then((all) => all.join(" "));

test("rows that were there before the start are claimed; later ones run in the transaction that finishes them", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "before");
  const { worker, direct, claimed } = directWorker(t.db);
  await using _ = worker;
  worker.start();
  await until("the first is done", async () => (await statuses(t.db)) === "PUBLISHED");
  expect([claimed, direct]).toEqual([["before"], []]);
  // A wake-up that is lost is made up for by the poll of the claims, so one of several must run directly.
  for (let n = 1; direct.length === 0; n++) {
    await appendEvents(t.db, `later-${n}`);
    worker.wake();
    await until("it is done", async () => !(await statuses(t.db)).includes("PENDING"));
  }
  expect(direct[0]).toMatch(/^later-/);
});

test("a pass that fails leaves its rows to claims, which retry and dead-letter them; others go on", async () => {
  await using t = await testDatabase();
  const { worker, direct, claimed, errors } = directWorker(t.db, {
    async runInTransaction(_, keys) {
      if (keys.includes("bad")) throw new Error("not in a batch");
    },
    async runClaimed(key) {
      if (key === "bad") throw new Error("not alone either");
      return done;
    },
  });
  await using _ = worker;
  worker.start();
  await appendEvents(t.db, "bad", "good");
  worker.wake();
  await until("the bad one is FAILED", async () => (await statuses(t.db)) === "FAILED PUBLISHED");
  expect(claimed.filter((key) => key === "bad")).toHaveLength(3);
  expect(direct).not.toContain("bad");
  expect(errors.length).toBeGreaterThan(0);
  const { rows } = await t.db.query(`select attempt_count, last_error from outbox_events where status = 'FAILED'`);
  expect(rows).toEqual([{ attempt_count: 3, last_error: "failed after 3 attempts: Error: not alone either" }]);
});

test("a row of a crashed worker is claimed when its lease has expired, while passes complete the new ones", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "crashed");
  await outboxClaims.claim(t.db, { limit: 1, leaseMs: 300, worker: "crashed" });
  const { worker, claimed } = directWorker(t.db);
  await using _ = worker;
  worker.start();
  await until("it is done", async () => {
    await appendEvents(t.db, "new");
    worker.wake();
    return claimed.includes("crashed");
  });
  await until("all are done", async () => /^[PUBLISHED ]+$/.test(await statuses(t.db)));
});

test("a stop waits for the running pass", async () => {
  await using t = await testDatabase();
  const entered = Promise.withResolvers<void>();
  const leave = Promise.withResolvers<void>();
  const { worker, direct, claimed } = directWorker(t.db, {
    async runInTransaction() {
      entered.resolve();
      await leave.promise;
    },
    runClaimed: async () => done,
  });
  worker.start();
  let n = 0;
  const appending = setInterval(() => void appendEvents(t.db, `n${n++}`).then(() => worker.wake()), 20);
  await entered.promise;
  clearInterval(appending);
  const stopped = worker.stop();
  leave.resolve();
  await stopped;
  expect(direct.length).toBeGreaterThan(0);
  const finished = direct.length + claimed.length;
  expect((await readStatuses(t.db)).filter((status) => status === "PUBLISHED")).toHaveLength(finished);
});

test("a wake-up of another process starts a pass", async () => {
  await using t = await testDatabase();
  await using sender = openWakeups({ url: t.url });
  await using receiver = openWakeups({ url: t.url });
  await receiver.listening;
  const ran: string[] = [];
  await using worker = createDirectWorker({
    db: t.db,
    complete: completeEvents,
    batchMax: 100,
    runInTransaction: async (_, events) => void ran.push(...events.map(({ aggregateKey }) => aggregateKey)),
    claimed: {
      name: "test",
      db: t.db,
      claims: outboxClaims,
      run: (jobs) => jobs.map(async () => done),
      settings: { pollMs: 600_000 },
      wakeups: receiver,
      topic: "app.outbox_events",
    },
  });
  worker.start();
  await until("it ran", async () => {
    await appendEvents(t.db, "a");
    sender.signal("app.outbox_events");
    return ran.length > 0;
  });
});
