import { expect, test } from "vitest";
import { testDatabase, until } from "../testing/index.ts";
import { done, type Outcome, retry } from "./index.ts";
import { appendEvents, outboxWorker, readStatuses } from "./testing.ts";

test("a job that takes longer than its lease keeps it by renewal", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a");
  const finish = Promise.withResolvers<Outcome>();
  let starts = 0;
  const leaseMs = 6_000; // A busy machine may stall for seconds; the lease is renewed every two.
  const settings = { leaseMs, pollMs: 20 };
  const slow = () => {
    starts++;
    return finish.promise;
  };
  await using one = outboxWorker(t.db, slow, { settings });
  await using two = outboxWorker(t.db, slow, { settings });
  one.start();
  two.start();
  const lease = async () => (await t.db.query(`select lease_epoch, lease_until from outbox_events`)).rows[0];
  await until("it is claimed", async () => (await lease()).lease_epoch === 1n);
  const first = (await lease()).lease_until;
  await until(
    "its lease has been extended past its first end",
    async () => (await lease()).lease_until - first > leaseMs + 1_000,
  );
  finish.resolve(done);
  await until("it is done", async () => (await readStatuses(t.db))[0] === "PUBLISHED");
  expect(starts).toBe(1);
});

test("a job whose lease is lost is aborted and its outcome ignored", async () => {
  await using t = await testDatabase();
  await appendEvents(t.db, "a");
  const begun = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<Outcome>();
  await using w = outboxWorker(
    t.db,
    (_, signal) => {
      signal.addEventListener("abort", () => aborted.resolve());
      begun.resolve();
      return finish.promise;
    },
    { settings: { leaseMs: 1_500 } },
  );
  w.start();
  await begun.promise; // A claimed row is not enough: a claim that takes longer than the lease is dropped.
  // Another worker has claimed it, as after a stall of this one.
  await t.db.query(
    `update outbox_events set lease_epoch = lease_epoch + 1, lease_until = now() + interval '1 hour', locked_by = 'other'`,
  );
  await aborted.promise;
  finish.resolve(retry(0, "too late"));
  await w.stop();
  expect((await t.db.query(`select status, locked_by, last_error from outbox_events`)).rows).toEqual([
    { status: "IN_FLIGHT", locked_by: "other", last_error: null },
  ]);
});
