/**
 * How late a grant is that was booked ahead: a thousand come due every second, and each is counted from its time to its
 * event being written, the last before the commit. One process has all roles.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import { done } from "@todoke/kernel/worker";
import { openBus } from "../buses.ts";
import { median } from "../measure.ts";
import { round, startService } from "../pipeline.ts";
import type { Result } from "../report.ts";
import { assertAddsUp, openDatabase } from "./accounts.ts";
import { bookAhead } from "./reservations.ts";

export interface Bus {
  readonly name: string;
  /** For a service on this database. */
  readonly url: (databaseUrl: string) => string;
}

const load = { perSecond: 1_000, seconds: 30 };
const rounds = 3;
// Nobody wakes the scheduler for what is booked by hand: it finds it by itself, within ten seconds.
const leadMs = 12_000;

export async function dueToGranted(postgresUrl: string, buses: readonly Bus[]): Promise<Result> {
  const ratios: Record<string, number> = {};
  for (const bus of buses) Object.assign(ratios, await dueToGrantedBy(bus, postgresUrl));
  const rate = `${load.perSecond.toLocaleString("en")} due a second for ${load.seconds} s`;
  return {
    title: `from a reservation being due to its points being granted, ${rate}, medians of ${rounds}`,
    figures: [],
    ratios,
  };
}

async function dueToGrantedBy(bus: Bus, postgresUrl: string): Promise<Record<string, number>> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl));
  const db = database.open("points", 1);
  const busUrl = bus.url(database.url);
  await listen(started.use(await openBus(busUrl, "bench")));
  started.use(await startService("points", { DATABASE_URL: database.url, EVENT_BUS_URL: busUrl }));
  await delays(db, { name: "warm", seconds: 5 }); // The first hundreds pay for the compiler.
  const taken: { readonly p50: number; readonly p99: number }[] = [];
  for (let n = 1; n <= rounds; n++) {
    process.stderr.write(`  due to granted on ${bus.name}, round ${n} of ${rounds} …`.padEnd(100).concat("\r"));
    taken.push(await delays(db, { name: `round${n}`, seconds: load.seconds }));
  }
  await assertAddsUp(db);
  process.stderr.write(`${" ".repeat(100)}\r`);
  return {
    [`${bus.name}, p50, ms`]: round(median(taken.map(({ p50 }) => p50))),
    [`${bus.name}, p99, ms`]: round(median(taken.map(({ p99 }) => p99))),
  };
}

/** Somebody hears of every grant: a broker that has nobody to give an event to would not take it. */
async function listen(bus: EventBus): Promise<void> {
  await bus.subscribe({
    consumer: "bench",
    subjects: ["points.events"],
    handle: async (deliveries) => deliveries.map(() => done),
  });
}

/** Both times are the database's. */
const delaysText = `
select count(*)::int as granted, percentile_cont(0.5) within group (order by ms) as p50,
       percentile_cont(0.99) within group (order by ms) as p99, min(ms) as least
  from (select extract(epoch from e.created_at - r.execute_at)::float8 * 1000 as ms
          from point_reservations r
          join outbox_events e on e.payload ->> 'transaction_id' = r.transaction_id::text
         where r.idempotency_key like 'bench ' || $1 || '%' and r.status = 'DONE') d`;

async function delays(db: Db, { name, seconds }: { name: string; seconds: number }) {
  const count = load.perSecond * seconds;
  await bookAhead(db, { count, inMs: leadMs, apartMs: 1_000 / load.perSecond, name });
  await sleep(leadMs + seconds * 1_000);
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await sleep(500)) {
    const { rows } = await db.query<{ granted: number; p50: number; p99: number; least: number }>(delaysText, [name]);
    const found = rows[0];
    if (found?.granted !== count) continue;
    if (found.least < 0) throw new Error(`a reservation was granted ${-found.least} ms before its time`);
    return found;
  }
  throw new Error(`not all of ${count} reservations were granted within a minute of the last being due`);
}
