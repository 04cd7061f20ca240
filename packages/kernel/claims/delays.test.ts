import { expect, test } from "vitest";
import type { Db } from "../db/index.ts";
import { outboxClaims } from "../outbox/index.ts";
import { testDatabase } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { delayCountMax, delaysSql, readDelays } from "./delays.ts";

const none = { late: 0, oldestMs: 0, failing: 0, lastError: null, parked: 0 };

interface Row {
  readonly aggregate: string;
  readonly status?: string;
  readonly due?: string;
  readonly attempts?: number;
}

const insert = (db: Db, { aggregate, status = "PENDING", due = "0", attempts = 0 }: Row) =>
  db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count,
                                next_retry_at, lease_until, published_at, last_error)
     values (gen_random_uuid(), 'T', 's', $1, 1, '{}', $2, $3, now() + $4::interval,
             case $2 when 'IN_FLIGHT' then now() + $4::interval end, case $2 when 'PUBLISHED' then now() end, 'error of ' || $1)`,
    [aggregate, status, attempts, due],
  );

const read = (db: Db) => readDelays(db, outboxClaims.table);

test("rows are late a minute after they are due or after their worker died", async () => {
  await using t = await testDatabase();
  const table = "outbox_events";
  await insert(t.db, { aggregate: "young", due: "-50 s" });
  await insert(t.db, { aggregate: "planned", due: "1 h" });
  await insert(t.db, { aggregate: "done", status: "PUBLISHED", due: "-1 h" });
  await insert(t.db, { aggregate: "worked on", status: "IN_FLIGHT", due: "-50 s" });
  expect(await read(t.db)).toEqual({ table, ...none });
  await insert(t.db, { aggregate: "forgotten", due: "-70 s" });
  await insert(t.db, { aggregate: "its worker died", status: "IN_FLIGHT", due: "-2 h" });
  const { oldestMs, ...counts } = await read(t.db);
  expect(counts).toMatchObject({ late: 2, failing: 0, parked: 0 });
  expect(Math.round(oldestMs / 60_000)).toBe(120);
});

test("rows that failed three times count as failing, also while they wait for a retry", async () => {
  await using t = await testDatabase();
  await insert(t.db, { aggregate: "a", attempts: 2, due: "30 s" });
  expect(await read(t.db)).toMatchObject(none);
  await insert(t.db, { aggregate: "b", attempts: 3, due: "30 s" });
  await insert(t.db, { aggregate: "c", attempts: 7, due: "-10 s" });
  expect(await read(t.db)).toMatchObject({ ...none, failing: 2, lastError: "error of c" });
});

test("aggregates with events behind a dead one are parked, and their events are not late", async () => {
  await using t = await testDatabase();
  await insert(t.db, { aggregate: "alone", status: "FAILED", due: "-1 h" });
  expect(await read(t.db)).toMatchObject(none);
  for (const status of ["FAILED", "FAILED", "PENDING"])
    await insert(t.db, { aggregate: "parked", status, due: "-1 h" });
  await insert(t.db, { aggregate: "other", due: "-1 h" });
  expect(await read(t.db)).toMatchObject({ late: 1, parked: 1 });
});

test("counts stop at their bound, and finished rows are not read", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  await t.db.query(
    `insert into sample_jobs (next_retry_at) select now() - interval '1 h' from generate_series(1, 11000)`,
  );
  expect(await readDelays(t.db, sampleJobs)).toMatchObject({ late: delayCountMax });
  await t.db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, published_at)
     select gen_random_uuid(), 'T', 's', 'k' || i, 1, '{}', 'PUBLISHED', now() from generate_series(1, 20000) i`,
  );
  for (const statistics of ["", "analyze outbox_events"]) {
    await t.db.query(statistics);
    const { rows } = await t.db.query(`explain ${delaysSql(outboxClaims.table, false)}`);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).not.toMatch(/Seq Scan|Bitmap|outbox_events_pkey/);
    expect(plan).toMatch(/outbox_events_ready/);
  }
});
