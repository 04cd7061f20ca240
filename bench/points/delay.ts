/**
 * The delay of reserved grants: 1,000 reservations come due per second, and each delay runs from the due time to the event
 * row, the last row before the commit. One process has all roles.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import { done } from "@todoke/kernel/worker";
import { openBus } from "../buses.ts";
import { clearProgress, median, round, showProgress } from "../measure.ts";
import type { Result } from "../report.ts";
import { startService } from "../start-service.ts";
import { assertLedgerBalances, openDatabase } from "./accounts.ts";
import { insertReservations } from "./reservations.ts";

export interface Bus {
  readonly name: string;
  /** The bus URL for a service on this database. */
  readonly url: (databaseUrl: string) => string;
}

/** `BENCH_POINTS_SECONDS=10` makes a short trial of one round. */
const trialSeconds = Number(process.env.BENCH_POINTS_SECONDS || 0);
const load = { perSecond: 1_000, seconds: trialSeconds || 30 };
const rounds = trialSeconds ? 1 : 3;
// Rows inserted by SQL do not wake the scheduler; it finds them within ten seconds.
const leadMs = 12_000;

export async function dueToGranted(postgresUrl: string, buses: readonly Bus[]): Promise<Result> {
  const summary: Record<string, number> = {};
  for (const bus of buses) Object.assign(summary, await dueToGrantedOn(bus, postgresUrl));
  const rate = `${load.perSecond.toLocaleString("en")} due per second for ${load.seconds} s`;
  return {
    title: `reservation due to points granted, ${rate}, medians of ${rounds}`,
    figures: [],
    summary,
  };
}

async function dueToGrantedOn(bus: Bus, postgresUrl: string): Promise<Record<string, number>> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl));
  const db = database.open("points", 1);
  const busUrl = bus.url(database.url);
  await subscribeToEvents(started.use(await openBus(busUrl, "bench")));
  started.use(await startService("points", { DATABASE_URL: database.url, EVENT_BUS_URL: busUrl }));
  await delays(db, { name: "warm", seconds: 5 }); // Warm-up: the first requests pay for compilation.
  const delayRounds: { readonly p50: number; readonly p99: number }[] = [];
  for (let n = 1; n <= rounds; n++) {
    showProgress(`due to granted on ${bus.name}, round ${n} of ${rounds}`);
    delayRounds.push(await delays(db, { name: `round${n}`, seconds: load.seconds }));
  }
  await assertLedgerBalances(db);
  clearProgress();
  return {
    [`${bus.name}, p50, ms`]: round(median(delayRounds.map(({ p50 }) => p50))),
    [`${bus.name}, p99, ms`]: round(median(delayRounds.map(({ p99 }) => p99))),
  };
}

/** A message broker without a subscription would not store the events. */
async function subscribeToEvents(bus: EventBus): Promise<void> {
  await bus.subscribe({
    consumer: "bench",
    subjects: ["points.events"],
    handle: async (deliveries) => deliveries.map(() => done),
  });
}

/** Both times are the database's. */
const delaysSql = `
select count(*)::int as granted, percentile_cont(0.5) within group (order by ms) as p50,
       percentile_cont(0.99) within group (order by ms) as p99, min(ms) as least
  from (select extract(epoch from e.created_at - r.execute_at)::float8 * 1000 as ms
          from point_reservations r
          join outbox_events e on e.payload ->> 'transaction_id' = r.transaction_id::text
         where r.idempotency_key like 'bench ' || $1 || '%' and r.status = 'DONE') d`;

async function delays(db: Db, { name, seconds }: { name: string; seconds: number }) {
  const count = load.perSecond * seconds;
  await insertReservations(db, { count, firstDueMs: leadMs, spacingMs: 1_000 / load.perSecond, name });
  await sleep(leadMs + seconds * 1_000);
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await sleep(500)) {
    const { rows } = await db.query<{ granted: number; p50: number; p99: number; least: number }>(delaysSql, [name]);
    const found = rows[0];
    if (found?.granted !== count) continue;
    if (found.least < 0) throw new Error(`a reservation was granted ${-found.least} ms too early`);
    return found;
  }
  throw new Error(`not all of ${count} reservations were granted within a minute of the last being due`);
}
