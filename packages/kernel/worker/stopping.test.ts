import { expect, test } from "vitest";
import { outboxClaims } from "../outbox/index.ts";
import { testDatabase, until } from "../testing/index.ts";
import { createWorker, done, type Outcome } from "./index.ts";
import { appendEvents, outboxWorker, readStatuses } from "./testing.ts";

test("a worker that is stopped as it starts does not wait for its poll", async () => {
  await using t = await testDatabase();
  const worker = outboxWorker(t.db, async () => done, { settings: { pollMs: 600_000 } });
  worker.start();
  await worker[Symbol.asyncDispose]();
});

test("a stop waits for running jobs and releases those that do not finish", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "quick", "endless");
  const quick = Promise.withResolvers<Outcome>();
  const w = outboxWorker(
    t.db,
    ({ aggregateKey }) => (aggregateKey === "quick" ? quick.promise : new Promise(() => {})),
    {
      settings: { drainMs: 5_000 }, // A database that stalls for seconds must not make it release the quick job.
    },
  );
  w.start();
  await until("both are claimed", async () => (await readStatuses(t.db)).every((status) => status === "IN_FLIGHT"));
  const stopped = w.stop();
  quick.resolve(done);
  await stopped;
  const { rows } = await t.db.query(`select aggregate_key, status, attempt_count from outbox_events order by position`);
  expect(rows).toEqual([
    { aggregate_key: "quick", status: "PUBLISHED", attempt_count: 1 },
    { aggregate_key: "endless", status: "PENDING", attempt_count: 0 },
  ]);
});

test("leases are renewed while a stop waits for running jobs", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a");
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
  const w = createWorker({
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
  expect(await readStatuses(t.db)).toEqual(["PUBLISHED"]);
});
