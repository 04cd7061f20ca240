/**
 * The whole road: all services in one process as `npm start` runs them, from a grant over HTTP to its SENT notification.
 * The cost of a grant is counted in CPU time of Node and PostgreSQL and in write-ahead log.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import { type BenchDatabase, openDatabase } from "./databases.ts";
import { sendAtRate, sendConcurrently } from "./load.ts";
import { clearProgress, type Figure, median, percentile, ratio, round, showProgress } from "./measure.ts";
import { bestClientCount, findPgbench } from "./pgbench.ts";
import { nextGrant, pgbenchGrants, sentDelays } from "./pipeline.ts";
import { familyCpuMicroseconds, findPostmaster } from "./process-cpu.ts";
import type { Result } from "./report.ts";
import { type AllServices, startAll } from "./start-all.ts";

export interface RoadBus {
  readonly name: "postgres" | "nats" | "rabbitmq";
  /** Without it the bus is in the database. */
  readonly url?: string;
}

export interface RoadOptions {
  readonly postgresUrl: string;
  readonly buses: readonly RoadBus[];
  /** A short run for work on the road itself: one round, no search for the best pgbench, no latencies at a steady rate. */
  readonly quick?: boolean;
}

const connections = 64;
const steadyPerSecond = 500;

/** The cost of one round, per grant. */
interface Round {
  readonly perSecond: number;
  readonly nodeMicroseconds: number;
  readonly postgresMicroseconds: number;
  readonly walBytes: number;
  readonly answerP50Ms: number;
  readonly answerP99Ms: number;
}

export async function wholeRoad({ postgresUrl, buses, quick = false }: RoadOptions): Promise<Result> {
  const size = quick ? { rounds: 1, grants: 12_000, warmUp: 6_000 } : { rounds: 3, grants: 30_000, warmUp: 20_000 };
  await using started = new AsyncDisposableStack();
  const forPgbench = started.use(await openDatabase(postgresUrl));
  const file = await findPgbench();
  const clients = quick
    ? 16
    : await bestClientCount((count, seconds) => pgbenchGrants(file, forPgbench, count, seconds));
  const baseline: number[] = [];
  const byBus = new Map<string, Round[]>(buses.map(({ name }) => [name, []]));
  const delays = new Map<string, { p50: number; p99: number }>();
  const roads = [];
  for (const bus of buses) {
    const road = started.use(await openRoad(postgresUrl, bus));
    await road.run(size.warmUp); // The first requests pay for compilation.
    roads.push(road);
  }
  for (let n = 1; n <= size.rounds; n++) {
    showProgress(`the whole road: pgbench, round ${n} of ${size.rounds}`);
    baseline.push(await pgbenchGrants(file, forPgbench, clients, quick ? 3 : 4));
    for (const road of roads) {
      showProgress(`the whole road on ${road.bus}, round ${n} of ${size.rounds}`);
      byBus.get(road.bus)?.push(await road.run(size.grants));
    }
  }
  if (!quick) for (const road of roads) delays.set(road.bus, await road.steadyDelays());
  clearProgress();
  return toResult({ clients, baseline, byBus, delays });
}

interface Road extends AsyncDisposable {
  readonly bus: string;
  /** From the first grant until the last notification is SENT. */
  run(grants: number): Promise<Round>;
  /** Grant to SENT at a steady rate, by the database's clock. */
  steadyDelays(): Promise<{ p50: number; p99: number }>;
}

async function openRoad(postgresUrl: string, { name, url: busUrl }: RoadBus): Promise<Road> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(await openDatabase(postgresUrl));
  const env = { DATABASE_URL: database.url, ...(busUrl !== undefined && { EVENT_BUS_URL: busUrl }) };
  const services = opened.use(await startAll(env));
  const db = database.open("notification", 1);
  const postmaster = await findPostmaster(db);
  const url = services.urlOf("entitlement");
  const road = opened.move();
  return {
    bus: name,
    run: (grants) => runRound({ services, db, postmaster, url, grants }),
    steadyDelays: () => measureSteadyDelays(database, url),
    [Symbol.asyncDispose]: () => road.disposeAsync(),
  };
}

interface RoundOptions {
  readonly services: AllServices;
  readonly db: Db;
  readonly postmaster: number;
  readonly url: string;
  readonly grants: number;
}

async function runRound({ services, db, postmaster, url, grants }: RoundOptions): Promise<Round> {
  const costs = async () => ({
    node: await services.cpuMicroseconds(),
    postgres: await familyCpuMicroseconds(postmaster),
    wal: await walPosition(db),
  });
  const sentBefore = await countSent(db);
  const durationsMs: number[] = [];
  const before = await costs();
  const startedAt = performance.now();
  await sendConcurrently({ url, nextRequest: nextGrant, connections, requests: grants, durationsMs });
  await waitUntilSent(db, sentBefore + grants);
  const seconds = (performance.now() - startedAt) / 1_000;
  const after = await costs();
  return {
    perSecond: grants / seconds,
    nodeMicroseconds: (after.node - before.node) / grants,
    postgresMicroseconds: (after.postgres - before.postgres) / grants,
    walBytes: Number(after.wal - before.wal) / grants,
    answerP50Ms: percentile(durationsMs, 0.5),
    answerP99Ms: percentile(durationsMs, 0.99),
  };
}

const countSent = async (db: Db): Promise<number> =>
  (await db.query<{ sent: number }>(`select count(*)::int as sent from notifications where status = 'SENT'`)).rows[0]
    ?.sent ?? 0;

/** Unfinished rows are in small indexes, so that waiting costs little; the count at the end proves that none is missing. */
async function waitUntilSent(db: Db, wanted: number): Promise<void> {
  const isLeft = `
    select from entitlement.outbox_events where status in ('PENDING', 'IN_FLIGHT') limit 1`;
  const isUnsent = `select from notifications where status in ('PENDING', 'PROCESSING') limit 1`;
  for (const deadline = performance.now() + 120_000; performance.now() < deadline; await sleep(20)) {
    if ((await db.query(isLeft)).rowCount || (await db.query(isUnsent)).rowCount) continue;
    if ((await countSent(db)) === wanted) return;
  }
  throw new Error(`not all of ${wanted} notifications were SENT within two minutes`);
}

async function walPosition(db: Db): Promise<bigint> {
  const { rows } = await db.query<{ bytes: string }>(`select (pg_current_wal_lsn() - '0/0'::pg_lsn)::text as bytes`);
  return BigInt(rows[0]?.bytes ?? 0);
}

async function measureSteadyDelays(database: BenchDatabase, url: string): Promise<{ p50: number; p99: number }> {
  const { rows } = await database.open("notification", 1).query("select clock_timestamp()::text as now");
  const sent = await sendAtRate({ url, nextRequest: nextGrant, perSecond: steadyPerSecond, seconds: 10 });
  return await sentDelays(database, rows[0].now, sent);
}

interface Measured {
  readonly clients: number;
  readonly baseline: readonly number[];
  readonly byBus: ReadonlyMap<string, readonly Round[]>;
  readonly delays: ReadonlyMap<string, { readonly p50: number; readonly p99: number }>;
}

function toResult({ clients, baseline, byBus, delays }: Measured): Result {
  const pgbenchFigure = toFigure(`pgbench, the grant's statement alone, ${clients} clients`, baseline);
  const figures = [pgbenchFigure];
  const summary: Record<string, number> = {};
  const targets: Record<string, string> = {};
  for (const [bus, rounds] of byBus) {
    const middle = (of: (round: Round) => number) => median(rounds.map(of));
    const figure = toFigure(
      `grant to SENT, bus on ${bus}`,
      rounds.map(({ perSecond }) => perSecond),
    );
    figures.push(figure);
    const add = (name: string, value: number, target?: string) => {
      summary[`${bus}: ${name}`] = value;
      if (target !== undefined) targets[`${bus}: ${name}`] = target;
    };
    add("grant to SENT / pgbench", ratio(figure, pgbenchFigure), "at least 1.0, aim 1.6");
    const [node, postgres] = [middle((each) => each.nodeMicroseconds), middle((each) => each.postgresMicroseconds)];
    add("CPU per grant, µs", Math.round(node + postgres), "at most 380, aim 250");
    add("CPU per grant of Node, µs", Math.round(node));
    add("CPU per grant of PostgreSQL, µs", Math.round(postgres));
    add("write-ahead log per grant, bytes", Math.round(middle((each) => each.walBytes)), "at most 4,000, aim 2,500");
    add("answer p50, ms", round(middle((each) => each.answerP50Ms)));
    add("answer p99, ms", round(middle((each) => each.answerP99Ms)));
    const delay = delays.get(bus);
    if (!delay) continue;
    add(`grant to SENT p50 at ${steadyPerSecond} a second, ms`, round(delay.p50), "at most 9, aim 5");
    add(`grant to SENT p99 at ${steadyPerSecond} a second, ms`, round(delay.p99), "at most 30, aim 20");
  }
  const title = `the whole road: \`npm start\`, grants by ${connections} connections, each until its notification is SENT`;
  return { title, figures, summary, targets };
}

const toFigure = (name: string, rounds: readonly number[]): Figure => ({
  name,
  perSecond: Math.round(median(rounds)),
  rounds: rounds.map(Math.round),
});
