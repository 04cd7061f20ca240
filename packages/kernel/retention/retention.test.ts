import { expect, test } from "vitest";
import { transaction } from "../db/index.ts";
import { testDatabase } from "../testing/index.ts";
import { deleteFinished, inboxRetentionError, retentionPolicies } from "./index.ts";

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
