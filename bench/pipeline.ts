/**
 * The pipeline from grant to notification, part by part, each with a baseline that does less: pgbench, a plain handler, the
 * client of the message broker. Every part is also measured on tables with millions of old rows.
 */
import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { changeEntitlementsSql } from "@todoke/entitlement/change-entitlements";
import { apiKey, type BenchDatabase, finishAndVacuum } from "./databases.ts";
import { sendAtRate, sendConcurrently, sendSequentially } from "./load.ts";
import {
  type Contender,
  clearProgress,
  measureInTurns,
  median,
  percentile,
  ratio,
  round,
  showProgress,
} from "./measure.ts";
import { bestClientCount, findPgbench, pgbench, toPgbenchScript } from "./pgbench.ts";
import type { Result } from "./report.ts";
import { type Service, type ServiceKind, startService } from "./start-service.ts";

/** The databases of a benchmark: with empty tables, and with millions of old rows. */
export interface PipelineSetup {
  readonly empty: BenchDatabase;
  readonly old: BenchDatabase;
}

/** A grant to a new user with a new key. */
export function nextGrant(): string {
  const id = randomUUIDv7();
  const body = `{"user_id":"u_${id}","stock_keeping_unit":"item1","reason":"purchase","purchase_id":"p_1"}`;
  return (
    `POST /v1/entitlements/grants HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${apiKey}\r\nIdempotency-Key: ${id}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

const connections = 64;
const grants = 30_000;
const pgbenchSeconds = 4;

/** Grants over HTTP by many connections and by a single client. Baselines: pgbench with the same statement, a plain handler. */
export async function grantsOverHttp({ empty, old }: PipelineSetup): Promise<Result[]> {
  await using started = new AsyncDisposableStack();
  const start = async (kind: ServiceKind, database: BenchDatabase, roles = "api,maintenance,relay") =>
    started.use(await startService(kind, { DATABASE_URL: database.url, ENTITLEMENT_ROLES: roles }));
  const newDatabase = async () => started.use(await empty.openSibling());
  // A database each, so that no relay publishes the events of another contender.
  const [forPgbench, forAll] = [await newDatabase(), await newDatabase()];
  const plain = await start("plain", await newDatabase());
  const api = await start("entitlement", await newDatabase(), "api");
  const apiOnOld = await start("entitlement", old, "api");
  const all = await start("entitlement", forAll);
  const file = await findPgbench();
  const clients = await bestClientCount((count, seconds) => pgbenchGrants(file, forPgbench, count, seconds));
  const httpContender = (name: string, service: Service, requests = grants): Contender => ({
    name,
    run: () => sendConcurrently({ url: service.url, nextRequest: nextGrant, connections, requests }),
  });
  for (const service of [plain, api, apiOnOld, all]) await httpContender("warm-up", service).run();
  await waitUntilPublished(forAll);
  const figures = await measureInTurns("grants over HTTP", [
    {
      name: `pgbench, one prepared statement, ${clients} clients`,
      run: async () => (await pgbenchGrants(file, forPgbench, clients)) * pgbenchSeconds,
      seconds: pgbenchSeconds,
    },
    httpContender("a plain Fastify handler, one statement at a time", plain, grants / 4),
    httpContender("the service, API only", api),
    { ...httpContender("the service, API and relay in one process", all), after: () => waitUntilPublished(forAll) },
    httpContender("the service, API only, 5 million old rows in every table", apiOnOld),
  ]);
  const [baseline, handler, apiOnly, withRelay, onOld] = figures;
  const bySingleClient = await singleClient({ plain, apiOnly: api, withRelay: all, onOld: apiOnOld });
  return [
    {
      title: `grants over HTTP by ${connections} connections: auth, schema, telemetry, audit and outbox on`,
      figures,
      summary: {
        "API only / pgbench": ratio(apiOnly, baseline),
        "API only / plain handler": ratio(apiOnly, handler),
        "API and relay / pgbench": ratio(withRelay, baseline),
        "API and relay / plain handler": ratio(withRelay, handler),
        "with 5 million old rows / without": ratio(onOld, apiOnly),
      },
      targets: {
        "API only / pgbench": "at least 1.5, aim 2.0",
        "API only / plain handler": "at least 5, aim 8",
        "with 5 million old rows / without": "at least 0.8, aim 0.95",
      },
    },
    bySingleClient,
  ];
}

/** Resolves when the relay has nothing left to publish. */
async function waitUntilPublished(database: BenchDatabase): Promise<void> {
  const db = database.open("entitlement", 1);
  const isLeft = `select from outbox_events where published_at is null limit 1`;
  for (const deadline = performance.now() + 120_000; performance.now() < deadline; await sleep(100)) {
    if ((await db.query(isLeft)).rowCount === 0) return;
  }
  throw new Error("the relay did not publish everything within two minutes");
}

/** The service's own statement with one random grant; the server builds its JSON. */
export function pgbenchGrants(file: string, { url }: BenchDatabase, clients: number, seconds = pgbenchSeconds) {
  const grant = `jsonb_build_array(jsonb_build_object(
    'scope', 'pgbench POST /v1/entitlements/grants', 'idem_key', 'k' || :k, 'request_hash', repeat('ab', 32),
    'caller', 'pgbench', 'user_id', 'u_' || :k, 'stock_keeping_unit', 'item1', 'status', 'ACTIVE', 'source', 'purchase',
    'source_id', 'p_1', 'event_id', uuidv7(), 'event_type', 'EntitlementGranted', 'headers', jsonb_build_object()))`;
  const sql = toPgbenchScript(changeEntitlementsSql, [grant]);
  return pgbench({ file, url, schema: "entitlement", sql, clients, seconds });
}

const singleClientRequests = 1_000;

async function singleClient(
  services: Readonly<Record<"plain" | "apiOnly" | "withRelay" | "onOld", Service>>,
): Promise<Result> {
  const mediansMs = {
    plain: [] as number[],
    apiOnly: [] as number[],
    withRelay: [] as number[],
    onOld: [] as number[],
  };
  for (let n = 1; n <= 3; n++) {
    for (const name of ["plain", "apiOnly", "withRelay", "onOld"] as const) {
      const times = await sendSequentially({
        url: services[name].url,
        nextRequest: nextGrant,
        requests: singleClientRequests,
      });
      mediansMs[name].push(percentile(times, 0.5));
    }
  }
  const medianMs = (name: keyof typeof mediansMs) => round(median(mediansMs[name]));
  return {
    title: "grants over HTTP by a single client, p50 in ms, medians of 3",
    figures: [],
    summary: {
      "plain handler, ms": medianMs("plain"),
      "API only, ms": medianMs("apiOnly"),
      "API and relay, ms": medianMs("withRelay"),
      "API only, 5 million old rows, ms": medianMs("onOld"),
      "API only / plain handler": round(medianMs("apiOnly") / medianMs("plain")),
      "API and relay / plain handler": round(medianMs("withRelay") / medianMs("plain")),
      "with 5 million old rows / without": round(medianMs("onOld") / medianMs("apiOnly")),
    },
    targets: { "API only / plain handler": "at most 1.2, aim 1.0" },
  };
}

const users = 1_000_000;
const checks = 150_000;

/** Checks of one entitlement. Baseline: Fastify hello-world. */
export async function checkOne({ empty, old }: PipelineSetup): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const start = async (kind: ServiceKind, url = "") =>
    started.use(await startService(kind, { DATABASE_URL: url, ENTITLEMENT_ROLES: "api" }));
  const fill = (database: BenchDatabase) =>
    database.open("entitlement").query(
      `insert into entitlements (user_id, stock_keeping_unit, status, source, source_id)
       select 'u_' || i, 'item1', 'ACTIVE', 'purchase', 'p_1' from generate_series(1, ${users}) i`,
    );
  for (const database of [empty, old]) {
    await fill(database);
    await finishAndVacuum(database);
  }
  const httpContender = (name: string, { url }: Service, nextRequest: () => string): Contender => ({
    name,
    run: () => sendConcurrently({ url, nextRequest, connections, requests: checks }),
  });
  const hello = () => "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";
  const check = () =>
    `GET /v1/users/u_${1 + Math.floor(Math.random() * users)}/entitlements/item1 HTTP/1.1\r\nHost: bench\r\n` +
    `Authorization: Bearer ${apiKey}\r\n\r\n`;
  const contenders = [
    httpContender("Fastify hello-world", await start("hello"), hello),
    httpContender("check of one entitlement", await start("entitlement", empty.url), check),
    httpContender(
      "check of one entitlement, 5 million old rows in every table",
      await start("entitlement", old.url),
      check,
    ),
  ];
  for (const contender of contenders) await contender.run();
  const figures = await measureInTurns("check", contenders);
  const [bare, ours, onOld] = figures;
  return {
    title: `checks of one entitlement over HTTP by ${connections} connections, a million users`,
    figures,
    summary: { "check / hello-world": ratio(ours, bare), "with 5 million old rows / without": ratio(onOld, ours) },
    targets: {
      "check / hello-world": "at least 0.4, aim 0.6",
      "with 5 million old rows / without": "at least 0.8, aim 0.95",
    },
  };
}

const steady = { perSecond: 500, seconds: 10 };

/** From the commit of a grant to its notification being SENT, with each service in its own process. */
export async function grantToSent(
  bus: { name: string; url: (database: BenchDatabase) => string },
  { empty, old }: PipelineSetup,
) {
  const summary: Record<string, number> = {};
  for (const [database, where] of [
    [await empty.openSibling(), ""],
    [old, ", 5 million old rows"],
  ] as const) {
    const rounds = { p50: [] as number[], p99: [] as number[] };
    await using started = new AsyncDisposableStack();
    if (where === "") started.use(database);
    const env = { DATABASE_URL: database.url, EVENT_BUS_URL: bus.url(database) };
    const { url } = started.use(await startService("entitlement", env));
    started.use(await startService("notification", env));
    await sendAtRate({ url, nextRequest: nextGrant, ...steady, seconds: 5 }); // Warm-up: the first requests pay for compilation.
    for (let n = 1; n <= 3; n++) {
      showProgress(`grant to SENT on ${bus.name}${where}, round ${n} of 3`);
      const since = await now(database);
      const sent = await sendAtRate({ url, nextRequest: nextGrant, ...steady });
      const { p50, p99 } = await sentDelays(database, since, sent);
      rounds.p50.push(p50);
      rounds.p99.push(p99);
    }
    summary[`p50${where}, ms`] = round(median(rounds.p50));
    summary[`p99${where}, ms`] = round(median(rounds.p99));
  }
  clearProgress();
  return {
    title: `grant committed to notification SENT on ${bus.name}, ${steady.perSecond} grants per second for ${steady.seconds} s`,
    figures: [],
    summary,
    targets: { "p50, ms": "at most 20, aim 8", "p99, ms": "at most 100, aim 40" },
  } satisfies Result;
}

async function now(database: BenchDatabase): Promise<string> {
  const { rows } = await database.open("notification", 1).query("select clock_timestamp()::text as now");
  return rows[0].now;
}

/** Waits until all are SENT. Both times are the database's; the first is the start of the grant's transaction. */
export async function sentDelays(
  database: BenchDatabase,
  since: string,
  count: number,
): Promise<{ p50: number; p99: number }> {
  const db = database.open("notification", 1);
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; ) {
    const { rows } = await db.query(
      `select count(*)::int as sent, percentile_cont(0.5) within group (order by ms) as p50,
              percentile_cont(0.99) within group (order by ms) as p99
         from (select extract(epoch from sent_at - occurred_at)::float8 * 1000 as ms
                 from notifications where status = 'SENT' and sent_at > $1 and occurred_at > $1) d`,
      [since],
    );
    if (rows[0].sent === count) return rows[0];
  }
  throw new Error(`not all of ${count} notifications were sent within a minute`);
}
