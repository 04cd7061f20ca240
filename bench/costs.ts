/**
 * The cost of one grant, order, reservation, spend and match, with all services in one process as `npm start` runs them: CPU
 * time of Node and PostgreSQL, write-ahead log and disk, until every event is delivered. docs/scale.md calculates with these
 * figures.
 */
import { randomUUID, randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Db } from "@todoke/kernel/db";
import { apiKey, openDatabase } from "./databases.ts";
import { sendConcurrently } from "./load.ts";
import { clearProgress, median, showProgress } from "./measure.ts";
import { nextGrant } from "./pipeline.ts";
import { familyCpuMicroseconds, findPostmaster } from "./process-cpu.ts";
import type { Result } from "./report.ts";
import { type AllServices, startAll } from "./start-all.ts";

/** `BENCH_COSTS=500` makes a short trial of one round. */
const trialCount = Number(process.env.BENCH_COSTS || 0);
const size = trialCount ? { rounds: 1, count: trialCount } : { rounds: 3, count: 10_000 };
// Orders are sent to the broker four at a time.
const orderShare = 0.1;
const connections = 64;

interface Kind {
  readonly service: Parameters<AllServices["urlOf"]>[0];
  readonly requestsEach: number;
  /** The share of a round's commands; all by default. */
  readonly share?: number;
  readonly nextRequest: () => string;
}

function request(method: string, path: string, body: object): string {
  const text = JSON.stringify(body);
  return (
    `${method} ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${apiKey}\r\nIdempotency-Key: ${randomUUID()}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
  );
}

const points = { service: "points", requestsEach: 1 } as const;
/** Users with points, so that each spend has a lot to take from. */
const spenders = 1_000;
let spends = 0;

const kinds: Readonly<Record<string, Kind>> = {
  grant: { service: "entitlement", requestsEach: 1, nextRequest: nextGrant },
  reservation: {
    ...points,
    nextRequest: () =>
      request("POST", "/point/reserve", {
        user_id: `u_${randomUUID()}`,
        point_amount: 1,
        execute_at: "2026-01-01T00:00:00Z",
      }),
  },
  spend: {
    ...points,
    nextRequest: () => request("PUT", "/point/sub", { user_id: `spender_${spends++ % spenders}`, point_amount: 1 }),
  },
  order: {
    service: "orders",
    requestsEach: 1,
    share: orderShare,
    nextRequest() {
      const id = randomUUIDv7();
      const order = { order_id: `o-${id}`, instrument: "BTC-USD", side: "BUY", qty: "0.5", price: null };
      const body = { idempotency_key: id, ...order, requested_at: "2026-01-31T09:30:00Z" };
      return request("POST", "/do/order", body).replace(/(Idempotency-Key: )[^\r]+/, `$1${id}`);
    },
  },
  match: {
    service: "matchmaking",
    requestsEach: 2,
    nextRequest: () => request("POST", `/v1/matchmaking/users/u_${randomUUID()}/queues/duel/tickets`, {}),
  },
};

export async function costPerCommand(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl));
  const db = database.open("public", 1);
  const instruments = fileURLToPath(new URL("./orders/unlimited.yaml", import.meta.url));
  const env = { DATABASE_URL: database.url, ORDERS_INSTRUMENTS: instruments };
  const services = started.use(await startAll({ ...env, MATCHMAKING_STORE: "postgres" }));
  const measured = { services, db, postmaster: await findPostmaster(db) };
  await addPoints(services);
  const summary: Record<string, number> = {};
  for (const [name, kind] of Object.entries(kinds)) {
    showProgress(`the cost of one ${name}`);
    const count = Math.ceil(size.count * (kind.share ?? 1));
    await costs(measured, kind, Math.ceil(count / 5)); // Warm-up: the first requests pay for compilation.
    const rounds: Cost[] = [];
    for (let n = 0; n < size.rounds; n++) rounds.push(await costs(measured, kind, count));
    for (const figure of ["Node, µs", "PostgreSQL, µs", "write-ahead log, bytes", "disk, bytes"] as const)
      summary[`${name}: ${figure}`] = Math.round(median(rounds.map((each) => each[figure])));
  }
  clearProgress();
  const title =
    "what one command costs under `npm start`, until its events are delivered and its notifications are SENT";
  return { title, figures: [], summary };
}

const addPoints = (services: AllServices) => {
  let added = 0;
  const nextRequest = () => request("PUT", "/point/add", { user_id: `spender_${added++}`, point_amount: 1_000_000 });
  return sendConcurrently({ url: services.urlOf("points"), nextRequest, connections, requests: spenders });
};

interface Measured {
  readonly services: AllServices;
  readonly db: Db;
  readonly postmaster: number;
}

type Cost = Readonly<Record<"Node, µs" | "PostgreSQL, µs" | "write-ahead log, bytes" | "disk, bytes", number>>;

async function costs(measured: Measured, { service, requestsEach, nextRequest }: Kind, count: number): Promise<Cost> {
  const { services, db } = measured;
  const before = await readTotals(measured);
  const requests = count * requestsEach;
  await sendConcurrently({ url: services.urlOf(service), nextRequest, connections, requests });
  await waitUntilDelivered(db);
  const after = await readTotals(measured);
  const each = (name: keyof Cost) => (after[name] - before[name]) / count;
  return {
    "Node, µs": each("Node, µs"),
    "PostgreSQL, µs": each("PostgreSQL, µs"),
    "write-ahead log, bytes": each("write-ahead log, bytes"),
    "disk, bytes": each("disk, bytes"),
  };
}

async function readTotals({ services, db, postmaster }: Measured): Promise<Cost> {
  const { rows } = await db.query<{ wal: number; disk: number }>(
    `select (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as wal, pg_database_size(current_database())::float8 as disk`,
  );
  return {
    "Node, µs": await services.cpuMicroseconds(),
    "PostgreSQL, µs": await familyCpuMicroseconds(postmaster),
    "write-ahead log, bytes": rows[0]?.wal ?? Number.NaN,
    "disk, bytes": rows[0]?.disk ?? Number.NaN,
  };
}

/** In the order in which a command passes them. */
const unfinishedSql = [
  `select from orders.outbox_orders where status in ('pending', 'sending') limit 1`,
  `select from points.point_reservations where status in ('PENDING', 'PROCESSING') limit 1`,
  ...["entitlement", "points", "orders", "matchmaking"].map(
    (service) => `select from ${service}.outbox_events where published_at is null limit 1`,
  ),
  `select from todoke_bus.bus_deliveries where done_at is null limit 1`,
  `select from notification.notifications where status in ('PENDING', 'PROCESSING') limit 1`,
];

async function waitUntilDelivered(db: Db): Promise<void> {
  for (const deadline = performance.now() + 300_000; performance.now() < deadline; await sleep(50)) {
    let left = 0;
    for (const sql of unfinishedSql) left += (await db.query(sql)).rowCount ?? 0;
    if (left === 0) return;
  }
  throw new Error("not every event was delivered within five minutes");
}
