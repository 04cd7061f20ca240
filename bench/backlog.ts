/**
 * How much longer the API takes while background work fills the cores: grants at a steady rate under `npm start`, at rest and while
 * a backlog of events drains through relay, bus and consumer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import { openDatabase } from "./databases.ts";
import { sendAtRate, sendConcurrently } from "./load.ts";
import { clearProgress, percentile, round, showProgress } from "./measure.ts";
import { nextGrant } from "./pipeline.ts";
import type { Result } from "./report.ts";
import { startAll } from "./start-all.ts";

/** `BENCH_BACKLOG=20000` makes a short trial. */
const backlog = Number(process.env.BENCH_BACKLOG || 100_000);
const perSecond = 200;
const restSeconds = 10;

export async function grantsBesideBacklog(postgresUrl: string): Promise<Result> {
  await using database = await openDatabase(postgresUrl);
  await using services = await startAll({ DATABASE_URL: database.url });
  const db = database.open("entitlement", 1);
  const url = services.urlOf("entitlement");
  showProgress("grants at rest and beside a backlog");
  await sendConcurrently({ url, nextRequest: nextGrant, connections: 64, requests: 10_000 }); // Pays for compilation.
  await waitUntilPublished(db);
  const steady = async (seconds: number) => {
    const durationsMs: number[] = [];
    await sendAtRate({ url, nextRequest: nextGrant, perSecond, seconds, durationsMs });
    return durationsMs;
  };
  const atRest = await steady(restSeconds);
  await waitUntilPublished(db);
  await db.query(copyEvents, [backlog]);
  const startedAt = performance.now();
  let drainedMs = 0;
  const drained = waitUntilPublished(db, backlogOnly).then(() => {
    drainedMs = performance.now() - startedAt;
  });
  const beside: number[] = [];
  while (drainedMs === 0) beside.push(...(await steady(1)));
  await drained;
  clearProgress();
  const [rest, busy] = [percentile(atRest, 0.99), percentile(beside, 0.99)];
  const name = `${backlog.toLocaleString("en")} events drain`;
  return {
    title: `${perSecond} grants per second while ${name}, all services in one process, bus on PostgreSQL`,
    figures: [],
    summary: {
      "p50 at rest, ms": round(percentile(atRest, 0.5)),
      "p99 at rest, ms": round(rest),
      "p50 while they drain, ms": round(percentile(beside, 0.5)),
      "p99 while they drain, ms": round(busy),
      "p99 while they drain / at rest": round(busy / rest),
      "events drained per second": Math.round((backlog / drainedMs) * 1_000),
    },
    targets: { "p99 while they drain / at rest": "at most 3, aim 1.5" },
  };
}

/** Events as a grant writes them, each of an aggregate of its own. */
const copyEvents = `
  with template as materialized (
    select event_type, subject, version, payload, headers, occurred_at from outbox_events order by position desc limit 1
  ), ids as materialized (select uuidv7() as event_id, i from generate_series(1, $1) i)
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, headers, occurred_at)
  select event_id, event_type, subject, 'backlog/' || i, version,
         payload || jsonb_build_object('event_id', event_id, 'user_id', 'backlog_' || i), headers, occurred_at
    from template, ids`;

const backlogOnly = `aggregate_key like 'backlog/%' and`;

async function waitUntilPublished(db: Db, where = ""): Promise<void> {
  const isLeft = `select from outbox_events where ${where} published_at is null limit 1`;
  for (const deadline = performance.now() + 120_000; performance.now() < deadline; await sleep(50))
    if ((await db.query(isLeft)).rowCount === 0) return;
  throw new Error("not every event was published within two minutes");
}
