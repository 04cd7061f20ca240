import { expect, test } from "vitest";
import { until } from "../testing/index.ts";
import { delivery, kinds, never, readLastErrors, redelivery, setup } from "./testing.ts";

test("attempts are counted per consumer until the event takes effect", async () => {
  await using t = await setup();
  const a = delivery("a");
  const attempts = async () => (await t.db.query(`select consumer, attempt_count as count from inbox_attempts`)).rows;
  const failing = async () => {
    throw new Error("not today");
  };
  for (const consumer of ["one", "two"]) await t.inboxFor(consumer, { effect: failing }).handle([redelivery(a)], never);
  const unavailable = async () => {
    throw Object.assign(new Error("connection refused"), { code: "ECONNREFUSED" });
  };
  await t.inboxFor("one", { effect: unavailable }).handle([redelivery(a)], never);
  expect(await attempts()).toEqual(expect.arrayContaining(["one", "two"].map((consumer) => ({ consumer, count: 1 }))));
  await t.inboxFor("one").handle([redelivery(a)], never);
  expect(await attempts()).toEqual([{ consumer: "two", count: 1 }]);
  await t.inboxFor("two").handle([redelivery(a)], never);
  expect(await attempts()).toEqual([]);
});

test("a failing event is retried and dead-lettered at its limit", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one", { attemptsMax: 3 });
  const broken = delivery("broken");
  const seen: string[] = [];
  for (let i = 0; i < 4; i++) seen.push(...kinds(await handle([i === 0 ? broken : redelivery(broken)], never)));
  expect(seen).toEqual(["retry", "retry", "dead", "done"]); // the last is a redelivery of the dead event
  expect(await readLastErrors(t.db, "one")).toEqual(["failed after 3 attempts: Error: not today"]);
});

test("an event that kills its process is dead-lettered at its limit", async () => {
  await using t = await setup();
  const killing = delivery("killing");
  const testEnd = Promise.withResolvers<void>();
  let begun = 0;
  const endless = () => {
    begun++;
    return testEnd.promise;
  };
  // Each attempt is counted before its process stops responding.
  for (let i = 0; i < 3; i++) {
    const inbox = t.inboxFor("one", { attemptsMax: 3, effect: endless });
    void inbox.handle([redelivery(killing)], never);
    // During the effect: a running statement would report the end of its connection.
    await until("it has begun", () => begun === i + 1);
    expect((await t.db.query(`select attempt_count from inbox_attempts`)).rows).toEqual([{ attempt_count: i + 1 }]);
    await until("its connection is ended", async () => {
      const killed = await t.db.query(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
      );
      return killed.rowCount === 1;
    });
  }
  const { handle } = t.inboxFor("one", { attemptsMax: 3 });
  expect(kinds(await handle([redelivery(killing), delivery("fine")], never))).toEqual(["dead", "done"]);
  expect(await readLastErrors(t.db, "one")).toEqual([expect.stringMatching(/failed after 3 attempts.*crash/)]);
  testEnd.reject(new Error("the test has ended"));
});
