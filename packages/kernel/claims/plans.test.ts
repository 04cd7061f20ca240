import { expect, test } from "vitest";
import type { Db } from "../db/index.ts";
import { outboxClaims } from "../outbox/index.ts";
import { outboxClaimsOf } from "../outbox/store.ts";
import { genericPlan, testDatabase } from "../testing/index.ts";
import { createSampleJobs, sampleJobs } from "../testing/sample-jobs.ts";
import { done } from "../worker/index.ts";
import { createClaims } from "./index.ts";
import { claimRecentSql, claimSql, renewSql, settleSql } from "./statements.ts";
import { resolveSpec } from "./table.ts";

const table = resolveSpec(outboxClaims.table);
/** As a relay of a service with two buses claims them. */
const ofOneBus = resolveSpec(outboxClaimsOf({ only: ["s"] }).table);

const finished = (n: number) => `
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, published_at)
  select gen_random_uuid(), 'T', 's', 'k' || i, 1, '{}', 'PUBLISHED', now() from generate_series(1, ${n}) i`;

const pending = (n: number) => `
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
  select gen_random_uuid(), 'T', 's', 'p' || i, 1, '{}' from generate_series(1, ${n}) i`;

test("claim, settle and renew are index probes on an empty table and on stale statistics", async () => {
  await using t = await testDatabase();
  const states = ["", "analyze outbox_events", `${finished(20_000)}`, "analyze outbox_events", `${pending(20_000)}`];
  for (const state of states) {
    await t.db.query(state);
    for (const sql of [claimSql(table), claimSql(ofOneBus), settleSql(table), renewSql(table)]) {
      const plan = await genericPlan(t.db, sql);
      expect(plan, `after ${state}`).not.toMatch(/Seq Scan on outbox_events|Bitmap|Join/);
      // By key, and by position within the aggregate: never a walk over the whole index.
      const probes = plan.match(/Index Scan using outbox_events_(pkey|unfinished) .*\n.*/g) ?? [];
      expect(probes.length).toBeGreaterThan(0);
      for (const probe of probes) expect(probe).toMatch(/Index Cond: \(+(event_id = ANY|aggregate_key = d)/);
    }
  }
});

/** How long one claim of 50 rows takes. */
async function claimMs(db: Db): Promise<number> {
  await db.query(pending(50));
  const startedAt = performance.now();
  const jobs = await outboxClaims.claim(db, { limit: 50, leaseMs: 60_000, worker: "test" });
  const tookMs = performance.now() - startedAt;
  expect(jobs.length).toBe(50);
  await outboxClaims.settle(
    db,
    jobs.map(({ claim }) => ({ claim, outcome: done })),
  );
  return tookMs;
}

/** The best tenth of the samples: the time on an otherwise idle machine. */
const fastest = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 10)] ?? Number.NaN;

test("a claim beside 200,000 finished rows takes at most twice as long as beside a thousand", {
  timeout: 240_000,
}, async () => {
  await using small = await testDatabase();
  await using large = await testDatabase();
  const lots = large.open({ statementTimeoutMs: 120_000 });
  await small.db.query(finished(1_000));
  for (let i = 0; i < 2; i++) await lots.query(finished(100_000));
  const times = { small: [] as number[], large: [] as number[] };
  // Alternating, so that other load on the machine affects both.
  for (let i = 0; i < 100; i++) {
    times.small.push(await claimMs(small.db));
    times.large.push(await claimMs(lots));
  }
  const [few, many] = [fastest(times.small), fastest(times.large)];
  expect(many / few, `${few.toFixed(2)} ms beside a thousand, ${many.toFixed(2)} ms beside 200,000`).toBeLessThan(2);
});

test("a recent claim does not read the rows finished since an open transaction began", async () => {
  await using t = await testDatabase({ tables: createSampleJobs });
  const jobs = createClaims<object>(sampleJobs);
  const old = await t.db.connect();
  await old.query("begin isolation level repeatable read");
  await old.query("select pg_current_xact_id()"); // From here on vacuum cannot remove finished rows.
  const request = { limit: 4_000, leaseMs: 60_000, worker: "test" };
  for (let n = 0; n < 5; n++) {
    await t.db.query(
      `insert into sample_jobs (next_retry_at) select now() - interval '10 s' from generate_series(1, 4000)`,
    );
    const held = await jobs.claim(t.db, request);
    await jobs.settle(
      t.db,
      held.map(({ claim }) => ({ claim, outcome: done })),
    );
  }
  await t.db.query(`insert into sample_jobs default values`);
  const countPages = async (sql: string) => {
    const values: Readonly<Record<string, string>> = { $1: "10", $2: "'test'", $3: "60000", $4: "5000" };
    const { rows } = await t.db.query(
      `explain (analyze, buffers) ${sql.replaceAll(/\$\d/g, (name) => values[name] ?? "")}`,
    );
    const lines = rows.map((row) => String(row["QUERY PLAN"]));
    const ready = lines.findIndex((line) => line.includes("sample_jobs_ready"));
    // Of the scan of that index only. Pages that another test has evicted count as read.
    const pages = /shared (?:hit=(\d+))?(?: ?read=(\d+))?/.exec(lines.slice(ready).join("\n")) ?? [];
    return Number(pages[1] ?? 0) + Number(pages[2] ?? 0);
  };
  const table = resolveSpec(sampleJobs);
  const recent = await countPages(claimRecentSql(table));
  const all = await countPages(claimSql(table));
  await old.query("rollback");
  old.release();
  expect(recent).toBeLessThan(10);
  expect(all).toBeGreaterThan(100); // Otherwise this test proves nothing.
});
