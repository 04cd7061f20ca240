/**
 * A million reservations due in the same second. Scheduler, relay and worker run in one process, the bus is on the same
 * PostgreSQL. The API is another process; its latency during the drain is compared with the latency before.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import { sendAtRate } from "../load.ts";
import { percentile, round } from "../measure.ts";
import type { Result } from "../report.ts";
import { startService } from "../start-service.ts";
import { assertLedgerBalances, changeRequest, fillAccounts, openDatabase, users } from "./accounts.ts";
import { insertReservations } from "./reservations.ts";

/** `BENCH_POINTS_DUE=100000` makes a short trial. */
const dueCount = Number(process.env.BENCH_POINTS_DUE || 1_000_000);
const addLoad = { perSecond: 100, beforeDrainSeconds: 30 };
const drainMsMax = 3_600_000;

export async function drainDueReservations(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl));
  const db = database.open("points", 2);
  await fillAccounts(db);
  await insertReservations(db, { count: dueCount, firstDueMs: 0, spacingMs: 0, name: "due" });
  await db.query("vacuum analyze point_reservations");
  await db.query("checkpoint");
  const env = { DATABASE_URL: database.url, EVENT_BUS_URL: database.url };
  const { url } = started.use(await startService("points", { ...env, POINTS_ROLES: "api" }));
  await sendAdds(url, 5); // Warm-up: the first requests pay for compilation.
  const beforeDrain = await sendAdds(url, addLoad.beforeDrainSeconds);

  started.use(await startService("points", { ...env, POINTS_ROLES: "relay,scheduler,maintenance,worker" }));
  const duringDrain = await sendAddsUntilDrained(url, db);
  await assertLedgerBalances(db);
  const { perSecond, steadiness } = await grantRate(db);
  const p99 = { beforeDrain: percentile(beforeDrain, 0.99), duringDrain: percentile(duringDrain, 0.99) };
  return {
    title: `${dueCount.toLocaleString("en")} reservations due in the same second; PostgreSQL bus; scheduler, relay and worker in one process`,
    figures: [],
    summary: {
      "granted per second": Math.round(perSecond),
      "rate of the slowest tenth / of the fastest tenth": round(steadiness),
      [`p99 of ${addLoad.perSecond} adds per second before the drain, ms`]: round(p99.beforeDrain),
      [`p99 of ${addLoad.perSecond} adds per second during the drain, ms`]: round(p99.duringDrain),
      [`p50 of ${addLoad.perSecond} adds per second during the drain, ms`]: round(percentile(duringDrain, 0.5)),
    },
  };
}

/** Returns the duration of each add in milliseconds. */
async function sendAdds(url: string, seconds: number): Promise<number[]> {
  const durationsMs: number[] = [];
  const nextRequest = () => changeRequest("add", `u_${1 + Math.floor(Math.random() * users)}`);
  await sendAtRate({ url, nextRequest, perSecond: addLoad.perSecond, seconds, durationsMs });
  return durationsMs;
}

async function sendAddsUntilDrained(url: string, db: Db): Promise<number[]> {
  const durationsMs: number[] = [];
  const isLeft = `select from point_reservations where status in ('PENDING', 'PROCESSING') limit 1`;
  const startedAt = performance.now();
  for (let waitedMs = 0; waitedMs < drainMsMax; waitedMs = performance.now() - startedAt) {
    durationsMs.push(...(await sendAdds(url, 5)));
    process.stderr.write(`  draining for ${Math.round(waitedMs / 1_000)} s …\r`);
    if ((await db.query(isLeft)).rowCount === 0) return durationsMs;
    await sleep(10);
  }
  throw new Error(`${dueCount} reservations were not granted within ${drainMsMax / 60_000} minutes`);
}

/** From the database's transaction times; the clock starts with the first grant. */
async function grantRate(db: Db): Promise<{ perSecond: number; steadiness: number }> {
  const { rows } = await db.query<{ seconds: number }>(
    `select extract(epoch from max(created_at) - min(created_at))::float8 as seconds
       from (select created_at, ntile(10) over (order by created_at) as tenth
               from point_transactions where kind = 'GRANT') t
      group by tenth order by tenth`,
  );
  const tenths = rows.map(({ seconds }) => seconds);
  const perSecond = dueCount / tenths.reduce((sum, seconds) => sum + seconds, 0);
  return { perSecond, steadiness: Math.min(...tenths) / Math.max(...tenths) };
}
