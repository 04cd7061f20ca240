/**
 * Orders: how many are accepted over HTTP, with pgbench running the service's own statement as baseline; and the time from
 * acceptance until the broker has the order, at a constant rate.
 */
import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Db } from "@todoke/kernel/db";
import { migrate } from "@todoke/orders";
import { acceptOrdersSql } from "@todoke/orders/accept-orders";
import { apiKey, type BenchDatabase, openDatabase } from "./databases.ts";
import { sendAtRate, sendConcurrently } from "./load.ts";
import { type Contender, clearProgress, measureInTurns, median, ratio, round, showProgress } from "./measure.ts";
import { bestClientCount, findPgbench, pgbench, toPgbenchScript } from "./pgbench.ts";
import type { Result } from "./report.ts";
import { startService } from "./start-service.ts";

const connections = 64;
const requests = 20_000;
const pgbenchSeconds = 4;

/** With and without a limit on orders per second. */
const instrumentFiles = { unlimited: "./orders/unlimited.yaml", limited: "./orders/limited.yaml" };

const startOrders = (database: BenchDatabase, file: keyof typeof instrumentFiles, more: Record<string, string> = {}) =>
  startService("orders", {
    DATABASE_URL: database.url,
    ORDERS_INSTRUMENTS: fileURLToPath(new URL(instrumentFiles[file], import.meta.url)),
    ...more,
  });

/** A new order with a new key. */
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
  const database = async () => started.use(await openDatabase(postgresUrl, migrate));
  const forPgbench = await database();
  const api = async (file: keyof typeof instrumentFiles): Promise<Contender["run"]> => {
    const { url } = started.use(await startOrders(await database(), file, { ORDERS_ROLES: "api" }));
    return () => sendConcurrently({ url, nextRequest: nextOrder, connections, requests });
  };
  const [unlimited, limited] = [await api("unlimited"), await api("limited")];
  const clients = await bestClientCount((count, seconds) => pgbenchOrders(forPgbench, count, seconds));
  for (const run of [unlimited, limited]) await run(); // Warm-up: the first requests pay for compilation.
  const figures = await measureInTurns("orders over HTTP", [
    {
      name: `pgbench, one prepared statement, ${clients} clients`,
      run: async () => (await pgbenchOrders(forPgbench, clients)) * pgbenchSeconds,
      seconds: pgbenchSeconds,
    },
    { name: "the service, API only", run: unlimited },
    { name: "the service, API only, with a limit on orders per second", run: limited },
  ]);
  const [baseline, service, serviceWithLimit] = figures;
  return {
    title: `orders accepted over HTTP by ${connections} connections: auth, schema, limits, ledger, history and outbox on`,
    figures,
    summary: {
      "the service / pgbench": ratio(service, baseline),
      "with a limit on orders per second / without": ratio(serviceWithLimit, service),
    },
  };
}

/** The service's own statement with one random order; the server builds its JSON. */
async function pgbenchOrders({ url }: BenchDatabase, clients: number, seconds = pgbenchSeconds): Promise<number> {
  const digest = `encode(sha256((:k)::text::bytea), 'hex')`;
  const order = `jsonb_build_array(jsonb_build_object(
    'caller', 'pgbench', 'idempotency_key', 'k' || :k, 'order_id', 'o' || :k,
    'client_order_id', 'tdk-' || substr(${digest}, 1, 40), 'request_digest', 'sha256' || chr(58) || ${digest},
    'request', jsonb_build_object('order_id', 'o' || :k, 'instrument', 'BTC-USD', 'side', 'BUY', 'qty', '0.5',
      'price', null, 'time_in_force', 'IOC', 'requested_at', now()),
    'adapter', 'paper', 'instrument', 'BTC-USD', 'side', 'BUY', 'qty', '0.5', 'price', null,
    'headers', jsonb_build_object(), 'event_id', uuidv7()))`;
  // 48 hours, 90 days, no limit on orders per second, reconciliation not required.
  const settings = ["172800000::float8", "7776000000::float8", "null::int", "null::float8"];
  const sql = toPgbenchScript(acceptOrdersSql, [order, ...settings]);
  return pgbench({ file: await findPgbench(), url, schema: "orders", sql, clients, seconds });
}

const steady = { perSecond: 200, seconds: 20 };
const rounds = 3;

/** One process with all roles and the paper broker; four orders are sent at once. */
export async function acceptedToTaken(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl, migrate));
  const db = database.open("orders", 1);
  const { url } = started.use(await startOrders(database, "unlimited", { ORDERS_SENDER_CONCURRENCY: "4" }));
  const delayRounds: { readonly p50: number; readonly p99: number }[] = [];
  for (let n = 0; n <= rounds; n++) {
    showProgress(`accepted to taken, round ${n} of ${rounds}`);
    const { rows } = await db.query<{ last: string }>(`select coalesce(max(id), 0)::text as last from outbox_orders`);
    const count = await sendAtRate({ url, nextRequest: nextOrder, ...steady });
    const found = await takenDelays(db, rows[0]?.last ?? "0", count);
    if (n > 0) delayRounds.push(found); // Round 0 is the warm-up.
  }
  clearProgress();
  return {
    title: `order accepted to taken by the broker, ${steady.perSecond} orders per second for ${steady.seconds} s, 4 at once, medians of ${rounds}`,
    figures: [],
    summary: {
      "p50, ms": round(median(delayRounds.map(({ p50 }) => p50))),
      "p99, ms": round(median(delayRounds.map(({ p99 }) => p99))),
    },
  };
}

/** Waits until all are taken, each at its first attempt. Both times are the database's. */
async function takenDelays(db: Db, last: string, count: number): Promise<{ p50: number; p99: number }> {
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
  throw new Error(`not all of ${count} orders were taken at their first attempt within a minute`);
}
