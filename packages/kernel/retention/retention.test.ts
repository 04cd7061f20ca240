import { expect, test } from "vitest";
import { transaction } from "../db/index.ts";
import { testDatabase } from "../testing/index.ts";
import { createSweep, deleteFinished, inboxRetentionError, retentionPolicies, sweepSql } from "./index.ts";

const hourMs = 3_600_000;

test("finished rows are deleted by age; unfinished rows are never deleted", async () => {
  await using t = await testDatabase();
  await t.db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, created_at, status, published_at, lease_until)
     select gen_random_uuid(), 'T', 's', 'k' || i, 1, '{}', now() - interval '1 year', status,
            case when status = 'PUBLISHED' then now() - age end, case when status = 'IN_FLIGHT' then now() - interval '1 year' end
       from generate_series(1, 2500) i,
            (values ('PUBLISHED', interval '2 hours'), ('PUBLISHED', interval '1 minute'),
                    ('PENDING', interval '1 year'), ('FAILED', interval '1 year'), ('IN_FLIGHT', interval '1 year')) as v(status, age)`,
  );
  expect(await deleteFinished(t.db, retentionPolicies.publishedEvents(hourMs))).toBe(2_500);
  const { rows } = await t.db.query(`select status, count(*)::int from outbox_events group by status order by status`);
  expect(rows).toEqual(["FAILED", "IN_FLIGHT", "PENDING", "PUBLISHED"].map((status) => ({ status, count: 2_500 })));
});

test("concurrent processes delete each row once", async () => {
  await using t = await testDatabase();
  await t.db.query(
    `insert into processed_events (consumer, event_id, processed_at)
     select 'c', gen_random_uuid(), now() - interval '1 year' from generate_series(1, 3000)`,
  );
  const deleted = await Promise.all([1, 2, 3].map(() => deleteFinished(t.db, retentionPolicies.processedEvents())));
  expect(deleted.reduce((a, b) => a + b)).toBe(3_000);
});

test("the mark of a dead event is not deleted", async () => {
  await using t = await testDatabase();
  await t.db.query(`insert into processed_events (consumer, event_id, result, processed_at)
                    values ('c', gen_random_uuid(), 'dead', now() - interval '1 year')`);
  expect(await deleteFinished(t.db, retentionPolicies.processedEvents(0))).toBe(0);
});

test("inbox retention shorter than broker retention is an error with the numbers", () => {
  const dayMs = 24 * hourMs;
  expect(inboxRetentionError({ inboxMs: 14 * dayMs, brokerMs: 7 * dayMs, redriveMs: 7 * dayMs })).toBeUndefined();
  expect(inboxRetentionError({ inboxMs: 7 * dayMs, brokerMs: 7 * dayMs, redriveMs: 1 * dayMs })).toMatch(
    /kept for 7 days.*at least 8 days/,
  );
});

test("an idempotency key is deleted when it has expired, and not before", async () => {
  await using t = await testDatabase();
  await t.db.query(
    `insert into idempotency_keys (scope, idem_key, request_hash, created_at, expires_at)
     select 's', key, sha256(''), now() - interval '1 year', now() + ends
       from (values ('expired', interval '-1 second'), ('valid', interval '1 hour')) as k(key, ends)`,
  );
  expect(await deleteFinished(t.db, retentionPolicies.idempotencyKeys())).toBe(1);
  expect((await t.db.query(`select idem_key from idempotency_keys`)).rows).toEqual([{ idem_key: "valid" }]);
});

test("a dead letter is deleted by the age of its resolution, and not before it is resolved", async () => {
  await using t = await testDatabase();
  await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, dead_at,
                            status, resolved_at, lease_until)
     select 'c', gen_random_uuid(), 'T', 's', name, 'never', '{}', '', now() - interval '1 year', status,
            now() - resolved, case when status = 'PROCESSING' then now() end
       from (values ('old', 'RESOLVED', interval '2 hours'), ('new', 'RESOLVED', interval '1 minute'),
                    ('dead', 'DEAD', null), ('asked', 'PENDING', null), ('held', 'PROCESSING', null)) as d(name, status, resolved)`,
  );
  expect(await deleteFinished(t.db, retentionPolicies.resolvedDeadLetters(hourMs))).toBe(1);
  const { rows } = await t.db.query(`select aggregate_key as name from inbox_dlq order by 1`);
  expect(rows.map(({ name }) => name)).toEqual(["asked", "dead", "held", "new"]);
});

test("locked rows are left to the next pass", async () => {
  await using t = await testDatabase();
  await t.db.query(`insert into processed_events (consumer, event_id, processed_at)
                    values ('c', gen_random_uuid(), now() - interval '1 year'), ('locked', gen_random_uuid(), now() - interval '1 year')`);
  const deleted = await transaction(t.db, async (tx) => {
    await tx.query(`select from processed_events where consumer = 'locked' for update`);
    return deleteFinished(t.open(), retentionPolicies.processedEvents());
  });
  expect(deleted).toBe(1);
  expect(await deleteFinished(t.db, retentionPolicies.processedEvents())).toBe(1);
});

const oldMarks = (n: number) => `
  insert into processed_events (consumer, event_id, processed_at)
  select 'c', gen_random_uuid(), now() - interval '1 year' from generate_series(1, ${n})`;

test("a sweep reads a part of the table at each pass, and begins again at the end", async () => {
  await using t = await testDatabase();
  await t.db.query(oldMarks(5_000));
  await t.db.query(`update processed_events set processed_at = now()
                     where event_id in (select event_id from processed_events order by random() limit 100)`);
  const pass = createSweep(t.db, retentionPolicies.processedEvents(hourMs), { passes: 5, pagesMin: 1 });
  const removed: number[] = [];
  for (let n = 0; n < 5; n++) removed.push(await pass());
  expect(removed.reduce((a, b) => a + b)).toBe(4_900);
  for (const each of removed.slice(0, 4)) expect(each).toBeGreaterThan(500);
  expect(await t.db.query(`select from processed_events`)).toMatchObject({ rowCount: 100 });

  await t.db.query(`update processed_events set processed_at = now() - interval '1 day'`);
  let left = 100;
  for (let n = 0; n < 6; n++) left -= await pass();
  expect(left).toBe(0);
});

test("a statement of a sweep reads its pages only, on an empty table and on stale statistics", async () => {
  await using t = await testDatabase();
  for (const state of [
    "",
    "analyze processed_events",
    oldMarks(20_000),
    "analyze processed_events",
    oldMarks(20_000),
  ]) {
    await t.db.query(state);
    const text = sweepSql(retentionPolicies.processedEvents())
      .replace("$1", "0")
      .replace("$2", "'(0,0)'")
      .replace("$3", "'(32,0)'");
    const plan = (await t.db.query(`explain ${text}`)).rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan, `after ${state}`).toMatch(/Tid Range Scan/);
    expect(plan, `after ${state}`).not.toMatch(/Seq Scan|Index/);
  }
});

test("the copy of a discarded row is removed by age, and what was decided stays", async () => {
  await using t = await testDatabase();
  const copy = { event_id: "e1", event_type: "T", consumer: null, payload: { email: "aki@example.com" } };
  await t.db.query(
    `insert into redrives (of_table, of_key, redriven_by, reason, attempt_count, redriven_at, action, discarded)
     select 'outbox_events', key, 'user:a', 'for good', 1, now() - age, action, discarded
       from (values ('old', interval '31 days', 'discard', $1::jsonb), ('new', interval '29 days', 'discard', $1),
                    ('redriven', interval '1 year', 'redrive', null)) r(key, age, action, discarded)`,
    [JSON.stringify(copy)],
  );
  for (const removed of [1, 0]) expect(await deleteFinished(t.db, retentionPolicies.discardedCopies())).toBe(removed);
  const { rows } = await t.db.query(
    "select of_key, reason, discarded, copy_removed_at is not null as removed from redrives order by redrive_id",
  );
  expect(rows).toEqual([
    { of_key: "old", reason: "for good", discarded: { event_id: "e1", event_type: "T" }, removed: true },
    { of_key: "new", reason: "for good", discarded: copy, removed: false },
    { of_key: "redriven", reason: "for good", discarded: null, removed: false },
  ]);
});
