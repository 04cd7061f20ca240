/**
 * Orders: how many are taken in over HTTP, beside pgbench of the service's own statement with one order each; and how long
 * one takes from being accepted to being taken by the broker, at an even pace.
 */
import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Db } from "@todoke/kernel/db";
import { migrate } from "@todoke/orders";
import { acceptOrdersSql } from "@todoke/orders/accept-orders";
import { apiKey, type BenchDatabase, openDatabase as openBenchDatabase } from "./databases.ts";
import { crowd, steadily } from "./load.ts";
import { type Contender, median, race } from "./measure.ts";
import { findPgbench, pgbench } from "./pgbench.ts";
import { ratio, round, startService } from "./pipeline.ts";
import type { Result } from "./report.ts";

const connections = 64;
const requests = 20_000;
const pgbenchSeconds = 4;

async function openDatabase(postgresUrl: string): Promise<BenchDatabase> {
  const database = await openBenchDatabase(postgresUrl);
  await migrate({ DATABASE_URL: database.url }, { dryRun: false });
  return database;
}

/** What may be ordered: with orders per second counted, or not. */
const files = { instruments: "./orders/instruments.yaml", counted: "./orders/counted.yaml" };

const startOrders = (database: BenchDatabase, file: keyof typeof files, more: Record<string, string> = {}) =>
  startService("orders", {
    DATABASE_URL: database.url,
    ORDERS_INSTRUMENTS: fileURLToPath(new URL(files[file], import.meta.url)),
    ...more,
  });

/** An order that nobody sent before. */
function nextOrder(): string {
  const id = randomUUIDv7();
  const body =
    `{"idempotency_key":"${id}","order_id":"o-${id}","instrument":"BTC-USD","side":"BUY","qty":"0.5","price":null,` +
    `"requested_at":"2026-01-31T09:30:00Z"}`;
  return (
    `POST /do/order HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${apiKey}\r\nIdempotency-Key: ${id}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

export async function ordersOverHttp(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const database = async () => started.use(await openDatabase(postgresUrl));
  const forPgbench = await database();
  const api = async (file: keyof typeof files): Promise<Contender["run"]> => {
    const { url } = started.use(await startOrders(await database(), file, { ORDERS_ROLES: "api" }));
    return () => crowd({ url, next: nextOrder, connections, requests });
  };
  const [ours, counted] = [await api("instruments"), await api("counted")];
  const clients = await bestClientCount(forPgbench);
  for (const warm of [ours, counted]) await warm(); // The first thousands pay for the compiler.
  const figures = await race("orders over HTTP", [
    {
      name: `pgbench, one prepared statement, ${clients} clients`,
      run: async () => (await pgbenchOrders(forPgbench, clients)) * pgbenchSeconds,
      seconds: pgbenchSeconds,
    },
    { name: "the service, sender and relay apart", run: ours },
    { name: "the same, orders per second counted over all processes", run: counted },
  ]);
  const [alone, service, limited] = figures;
  return {
    title: `orders taken in over HTTP by ${connections} connections: auth, schema, limits, ledger, history and outbox on`,
    figures,
    ratios: {
      "the service / pgbench": ratio(service, alone),
      "orders per second counted / not counted": ratio(limited, service),
    },
  };
}

/** pgbench's best of these, tried for a second or two each. */
async function bestClientCount(database: BenchDatabase): Promise<number> {
  const tried: { clients: number; perSecond: number }[] = [];
  for (const clients of [4, 8, 16, 32]) tried.push({ clients, perSecond: await pgbenchOrders(database, clients, 2) });
  return tried.sort((a, b) => b.perSecond - a.perSecond)[0]?.clients ?? 8;
}

/** The service's own statement, with one order that pgbench draws; its JSON is built on the server. */
async function pgbenchOrders({ url }: BenchDatabase, clients: number, seconds = pgbenchSeconds): Promise<number> {
  const digest = `encode(sha256((:k)::text::bytea), 'hex')`;
  const order = `jsonb_build_array(jsonb_build_object(
    'caller', 'pgbench', 'idempotency_key', 'k' || :k, 'order_id', 'o' || :k,
    'client_order_id', 'tdk-' || substr(${digest}, 1, 40), 'request_digest', 'sha256' || chr(58) || ${digest},
    'request', jsonb_build_object('order_id', 'o' || :k, 'instrument', 'BTC-USD', 'side', 'BUY', 'qty', '0.5',
      'price', null, 'time_in_force', 'IOC', 'requested_at', now()),
    'adapter', 'paper', 'instrument', 'BTC-USD', 'side', 'BUY', 'qty', '0.5', 'price', null,
    'headers', jsonb_build_object(), 'event_id', uuidv7()))`;
  // 48 hours, 90 days, as many orders as come, and no look at the broker's books.
  const values = ["172800000::float8", "7776000000::float8", "null::int", "null::float8"];
  const statement = values
    .reduce((sql, value, place) => sql.replaceAll(new RegExp(`\\$${place + 2}(::\\w+)?`, "g"), value), acceptOrdersSql)
    .replace("$1::jsonb", order)
    .replaceAll(/--.*$/gm, "")
    // pgbench would take a colon in a text for the beginning of a variable.
    .replaceAll(/:(MI|SS)/g, "' || chr(58) || '$1")
    .replaceAll("\n", " ");
  const sql = `\\set k random(1, 9000000000000000000)\n${statement};\n`;
  return pgbench({ file: await findPgbench(), url, schema: "orders", sql, clients, seconds });
}

const steady = { perSecond: 200, seconds: 20 };
const rounds = 3;

/** One process with all roles; the paper broker, four orders at once. */
export async function acceptedToSent(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl));
  const db = database.open("orders", 1);
  const { url } = started.use(await startOrders(database, "instruments", { ORDERS_SENDER_CONCURRENCY: "4" }));
  const taken: { readonly p50: number; readonly p99: number }[] = [];
  for (let n = 0; n <= rounds; n++) {
    process.stderr.write(`  accepted to sent, round ${n} of ${rounds} …`.padEnd(100).concat("\r"));
    const { rows } = await db.query<{ last: string }>(`select coalesce(max(id), 0)::text as last from outbox_orders`);
    const count = await steadily({ url, next: nextOrder, ...steady });
    const found = await delays(db, rows[0]?.last ?? "0", count);
    if (n > 0) taken.push(found); // The first is for the compiler.
  }
  process.stderr.write(`${" ".repeat(100)}\r`);
  return {
    title: `from an order being accepted to the broker having taken it, ${steady.perSecond} orders a second for ${steady.seconds} s, 4 at once, medians of ${rounds}`,
    figures: [],
    ratios: {
      "p50, ms": round(median(taken.map(({ p50 }) => p50))),
      "p99, ms": round(median(taken.map(({ p99 }) => p99))),
    },
  };
}

/** Waits until all are taken, each at its first try; both times are the database's. */
async function delays(db: Db, last: string, count: number): Promise<{ p50: number; p99: number }> {
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await sleep(100)) {
    const { rows } = await db.query(
      `select count(*)::int as sent, max(attempts) as attempts, percentile_cont(0.5) within group (order by ms) as p50,
              percentile_cont(0.99) within group (order by ms) as p99
         from (select attempts, extract(epoch from done_at - created_at)::float8 * 1000 as ms
                 from outbox_orders where id > $1 and status = 'succeeded') d`,
      [last],
    );
    if (rows[0].sent === count && rows[0].attempts === 1) return rows[0];
  }
  throw new Error(`not all of ${count} orders were taken at their first try within a minute`);
}
