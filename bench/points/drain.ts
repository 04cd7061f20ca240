/**
 * A million reservations that are due in the same second. Scheduler, relay and worker are one process, the bus is on the
 * same PostgreSQL; the API is a process of its own, and what it is asked meanwhile is to be answered as it is at rest.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import { steadily } from "../load.ts";
import { percentile } from "../measure.ts";
import { round, startService } from "../pipeline.ts";
import type { Result } from "../report.ts";
import { assertAddsUp, change, fillAccounts, openDatabase, users } from "./accounts.ts";
import { bookAhead } from "./reservations.ts";

/** `BENCH_POINTS_DUE=100000` for trying out. */
const due = Number(process.env.BENCH_POINTS_DUE || 1_000_000);
const asking = { perSecond: 100, atRestSeconds: 30 };
const drainMsMax = 3_600_000;

export async function drainOfDue(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl));
  const db = database.open("points", 2);
  await fillAccounts(db);
  await bookAhead(db, { count: due, inMs: 0, apartMs: 0, name: "due" });
  await db.query("vacuum analyze point_reservations");
  await db.query("checkpoint");
  const env = { DATABASE_URL: database.url, EVENT_BUS_URL: database.url };
  const { url } = started.use(await startService("points", { ...env, POINTS_ROLES: "api" }));
  await ask(url, 5); // Warm: the first hundreds pay for the compiler.
  const atRest = await ask(url, asking.atRestSeconds);

  started.use(await startService("points", { ...env, POINTS_ROLES: "relay,scheduler,maintenance,worker" }));
  const meanwhile = await askUntilDrained(url, db);
  await assertAddsUp(db);
  const { perSecond, steadiness } = await pace(db);
  const p99 = { atRest: percentile(atRest, 0.99), meanwhile: percentile(meanwhile, 0.99) };
  return {
    title: `${due.toLocaleString("en")} reservations due in the same second, the bus on PostgreSQL, one process of scheduler, relay and worker`,
    figures: [],
    ratios: {
      "granted a second": Math.round(perSecond),
      "the slowest tenth of them / the fastest": round(steadiness),
      [`p99 of ${asking.perSecond} adds a second at rest, ms`]: round(p99.atRest),
      "p99 of them while it drains, ms": round(p99.meanwhile),
      "p50 of them while it drains, ms": round(percentile(meanwhile, 0.5)),
    },
  };
}

/** How long each took, in milliseconds. */
async function ask(url: string, seconds: number): Promise<number[]> {
  const took: number[] = [];
  const next = () => change("add", `u_${1 + Math.floor(Math.random() * users)}`);
  await steadily({ url, next, perSecond: asking.perSecond, seconds, took });
  return took;
}

async function askUntilDrained(url: string, db: Db): Promise<number[]> {
  const took: number[] = [];
  const isLeft = `select from point_reservations where status in ('PENDING', 'PROCESSING') limit 1`;
  const startedAt = performance.now();
  for (let waitedMs = 0; waitedMs < drainMsMax; waitedMs = performance.now() - startedAt) {
    took.push(...(await ask(url, 5)));
    process.stderr.write(`  draining for ${Math.round(waitedMs / 1_000)} s …\r`);
    if ((await db.query(isLeft)).rowCount === 0) return took;
    await sleep(10);
  }
  throw new Error(`${due} reservations were not granted within ${drainMsMax / 60_000} minutes`);
}

/** By the times of the transactions, which are the database's: the first is when the first were granted. */
async function pace(db: Db): Promise<{ perSecond: number; steadiness: number }> {
  const { rows } = await db.query<{ seconds: number }>(
    `select extract(epoch from max(created_at) - min(created_at))::float8 as seconds
       from (select created_at, ntile(10) over (order by created_at) as tenth
               from point_transactions where kind = 'GRANT') t
      group by tenth order by tenth`,
  );
  const tenths = rows.map(({ seconds }) => seconds);
  const perSecond = due / tenths.reduce((sum, seconds) => sum + seconds, 0);
  return { perSecond, steadiness: Math.min(...tenths) / Math.max(...tenths) };
}
