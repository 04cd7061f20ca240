/**
 * The road from a grant to a notification, piece by piece, each beside something that does less: PostgreSQL alone, a plain
 * handler, the broker's own client. Every piece of ours is also measured on tables with millions of old rows.
 */
import { fork } from "node:child_process";
import { randomUUIDv7 } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { changeEntitlementsSql } from "@todoke/entitlement/change-entitlements";
import { apiKey, type BenchDatabase, clearUp, env as keys } from "./databases.ts";
import { crowd, oneByOne, steadily } from "./load.ts";
import { type Contender, type Figure, median, percentile, race } from "./measure.ts";
import { findPgbench, pgbench } from "./pgbench.ts";
import type { Result } from "./report.ts";

/** Where a piece is measured: tables as they are on the first day, and after years. */
export interface PipelineSetup {
  readonly empty: BenchDatabase;
  readonly old: BenchDatabase;
}

interface Service extends AsyncDisposable {
  readonly url: string;
  processorMicroseconds(): Promise<number>;
}

export type Kind =
  | "entitlement"
  | "notification"
  | "account"
  | "matchmaking"
  | "orders"
  | "gateway-bff"
  | "points"
  | "plain"
  | "hello"
  | "guarded";

export async function startService(kind: Kind, more: Record<string, string>): Promise<Service> {
  const services = ["ENTITLEMENT", "NOTIFICATION", "ACCOUNT", "MATCHMAKING", "GATEWAY_BFF", "POINTS", "ORDERS"];
  const ports = services.map((name) => [`${name}_PORT`, "0"]);
  const usual = { ...Object.fromEntries(ports), LOG_LEVEL: "warn" };
  const env = { ...usual, ...keys, ...more };
  const child = fork(new URL("./service.ts", import.meta.url), [kind], { env, execArgv: [] });
  const [url] = (await once(child, "message")) as [string];
  return {
    url,
    async processorMicroseconds() {
      child.send("processor time");
      return ((await once(child, "message")) as [number])[0];
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await once(child, "exit");
    },
  };
}

/** A grant that nobody asked for before, of a user who is new. */
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

/** Grants over HTTP beside pgbench of the same statement and beside a plain handler; and one client alone. */
export async function grantsOverHttp({ empty, old }: PipelineSetup): Promise<Result[]> {
  await using started = new AsyncDisposableStack();
  const start = async (kind: Kind, database: BenchDatabase, roles = "api,maintenance,relay") =>
    started.use(await startService(kind, { DATABASE_URL: database.url, ENTITLEMENT_ROLES: roles }));
  const another = async () => started.use(await empty.another());
  // A database each: what one leaves in its outbox is not for the relay of another.
  const [forPgbench, forAll] = [await another(), await another()];
  const plain = await start("plain", await another());
  const api = await start("entitlement", await another(), "api");
  const apiOnOld = await start("entitlement", old, "api");
  const all = await start("entitlement", forAll);
  const file = await findPgbench();
  const clients = await bestClientCount(file, forPgbench);
  const by = (name: string, service: Service, requests = grants): Contender => ({
    name,
    run: () => crowd({ url: service.url, next: nextGrant, connections, requests }),
  });
  for (const service of [plain, api, apiOnOld, all]) await by("warm", service).run();
  await drained(forAll);
  const figures = await race("grants over HTTP", [
    {
      name: `pgbench, one prepared statement, ${clients} clients`,
      run: async () => (await pgbenchGrants(file, forPgbench, clients)) * pgbenchSeconds,
      seconds: pgbenchSeconds,
    },
    by("a plain Fastify handler, statement by statement", plain, grants / 4),
    by("the service, relay apart", api),
    { ...by("the service, relay at work in the same process", all), after: () => drained(forAll) },
    by("the service, relay apart, 5 million old rows in every table", apiOnOld),
  ]);
  const [alone, handler, ours, whole, onOld] = figures;
  const oneAlone = await oneClient({ plain, ours: api, whole: all, onOld: apiOnOld });
  return [
    {
      title: `grants over HTTP by ${connections} connections: auth, schema, telemetry, audit and outbox on`,
      figures,
      ratios: {
        "relay apart / pgbench": ratio(ours, alone),
        "relay apart / plain handler": ratio(ours, handler),
        "relay in the same process / pgbench": ratio(whole, alone),
        "relay in the same process / plain handler": ratio(whole, handler),
        "with 5 million old rows / without": ratio(onOld, ours),
      },
      wanted: {
        "relay apart / pgbench": "at least 1.5, aim 2.0",
        "relay apart / plain handler": "at least 5, aim 8",
        "with 5 million old rows / without": "at least 0.8, aim 0.95",
      },
    },
    oneAlone,
  ];
}

/** Resolves when the relay has nothing left to publish. */
async function drained(database: BenchDatabase): Promise<void> {
  const db = database.open("entitlement", 1);
  const isLeft = `select from outbox_events where published_at is null limit 1`;
  for (const deadline = performance.now() + 120_000; performance.now() < deadline; await sleep(100)) {
    if ((await db.query(isLeft)).rowCount === 0) return;
  }
  throw new Error("the relay did not publish everything within two minutes");
}

/** pgbench's best of these, tried for a second or two each. */
async function bestClientCount(file: string, database: BenchDatabase): Promise<number> {
  const tried: { clients: number; perSecond: number }[] = [];
  for (const clients of [2, 4, 8, 16, 32])
    tried.push({ clients, perSecond: await pgbenchGrants(file, database, clients, 2) });
  return tried.sort((a, b) => b.perSecond - a.perSecond)[0]?.clients ?? 4;
}

/** The service's own statement, with one grant that pgbench draws; its JSON is built on the server. */
function pgbenchGrants(file: string, { url }: BenchDatabase, clients: number, seconds = pgbenchSeconds) {
  const grant = `jsonb_build_array(jsonb_build_object(
    'scope', 'pgbench POST /v1/entitlements/grants', 'idem_key', 'k' || :k, 'request_hash', repeat('ab', 32),
    'caller', 'pgbench', 'user_id', 'u_' || :k, 'stock_keeping_unit', 'item1', 'status', 'ACTIVE', 'source', 'purchase',
    'source_id', 'p_1', 'event_id', uuidv7(), 'event_type', 'EntitlementGranted', 'headers', jsonb_build_object()))`;
  const statement = changeEntitlementsSql
    .replace("$1::jsonb", grant)
    .replaceAll(/--.*$/gm, "")
    // pgbench would take a colon in a text for the beginning of a variable.
    .replaceAll(/:(MI|SS)/g, "' || chr(58) || '$1")
    .replaceAll("\n", " ");
  const sql = `\\set k random(1, 9000000000000000000)\n${statement};\n`;
  return pgbench({ file, url, schema: "entitlement", sql, clients, seconds });
}

const aloneRequests = 1_000;

async function oneClient(services: Readonly<Record<"plain" | "ours" | "whole" | "onOld", Service>>): Promise<Result> {
  const taken = { plain: [] as number[], ours: [] as number[], whole: [] as number[], onOld: [] as number[] };
  for (let round = 1; round <= 3; round++) {
    for (const name of ["plain", "ours", "whole", "onOld"] as const) {
      const times = await oneByOne({ url: services[name].url, next: nextGrant, requests: aloneRequests });
      taken[name].push(percentile(times, 0.5));
    }
  }
  const of = (name: keyof typeof taken) => round(median(taken[name]));
  return {
    title: "grants over HTTP by one client alone, p50 in ms, medians of 3",
    figures: [],
    ratios: {
      "a plain handler, ms": of("plain"),
      "the service, relay apart, ms": of("ours"),
      "the service, relay at work in the same process, ms": of("whole"),
      "the service, relay apart, 5 million old rows, ms": of("onOld"),
      "relay apart / a plain handler": round(of("ours") / of("plain")),
      "relay in the same process / a plain handler": round(of("whole") / of("plain")),
      "with 5 million old rows / without": round(of("onOld") / of("ours")),
    },
    wanted: { "relay apart / a plain handler": "at most 1.2, aim 1.0" },
  };
}

const users = 1_000_000;
const checks = 150_000;

/** May this user use that? Beside Fastify that says hello. */
export async function checkOne({ empty, old }: PipelineSetup): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const start = async (kind: Kind, url = "") =>
    started.use(await startService(kind, { DATABASE_URL: url, ENTITLEMENT_ROLES: "api" }));
  const fill = (database: BenchDatabase) =>
    database.open("entitlement").query(
      `insert into entitlements (user_id, stock_keeping_unit, status, source, source_id)
       select 'u_' || i, 'item1', 'ACTIVE', 'purchase', 'p_1' from generate_series(1, ${users}) i`,
    );
  for (const database of [empty, old]) {
    await fill(database);
    await clearUp(database);
  }
  const by = (name: string, { url }: Service, next: () => string): Contender => ({
    name,
    run: () => crowd({ url, next, connections, requests: checks }),
  });
  const hello = () => "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";
  const check = () =>
    `GET /v1/users/u_${1 + Math.floor(Math.random() * users)}/entitlements/item1 HTTP/1.1\r\nHost: bench\r\n` +
    `Authorization: Bearer ${apiKey}\r\n\r\n`;
  const contenders = [
    by("Fastify hello-world", await start("hello"), hello),
    by("check of one entitlement", await start("entitlement", empty.url), check),
    by("the same, 5 million old rows in every table", await start("entitlement", old.url), check),
  ];
  for (const contender of contenders) await contender.run();
  const figures = await race("check", contenders);
  const [bare, ours, onOld] = figures;
  return {
    title: `checks of one entitlement over HTTP by ${connections} connections, a million users`,
    figures,
    ratios: { "check / hello-world": ratio(ours, bare), "with 5 million old rows / without": ratio(onOld, ours) },
    wanted: {
      "check / hello-world": "at least 0.4, aim 0.6",
      "with 5 million old rows / without": "at least 0.8, aim 0.95",
    },
  };
}

const steady = { perSecond: 500, seconds: 10 };

/** From the grant's commit to the notification being SENT, with each service as a process of its own. */
export async function grantToSent(
  bus: { name: string; url: (database: BenchDatabase) => string },
  { empty, old }: PipelineSetup,
) {
  const ratios: Record<string, number> = {};
  for (const [database, where] of [
    [await empty.another(), ""],
    [old, ", 5 million old rows"],
  ] as const) {
    const rounds = { p50: [] as number[], p99: [] as number[] };
    await using started = new AsyncDisposableStack();
    if (where === "") started.use(database);
    const env = { DATABASE_URL: database.url, EVENT_BUS_URL: bus.url(database) };
    const { url } = started.use(await startService("entitlement", env));
    started.use(await startService("notification", env));
    await steadily({ url, next: nextGrant, ...steady, seconds: 5 }); // Warm: the first hundreds pay for the compiler.
    for (let n = 1; n <= 3; n++) {
      process.stderr.write(`  grant to SENT on ${bus.name}${where}, round ${n} of 3 …`.padEnd(100).concat("\r"));
      const since = await now(database);
      const sent = await steadily({ url, next: nextGrant, ...steady });
      const { p50, p99 } = await delays(database, since, sent);
      rounds.p50.push(p50);
      rounds.p99.push(p99);
    }
    ratios[`p50${where}, ms`] = round(median(rounds.p50));
    ratios[`p99${where}, ms`] = round(median(rounds.p99));
  }
  process.stderr.write(`${" ".repeat(100)}\r`);
  return {
    title: `grant committed to notification SENT on ${bus.name}, ${steady.perSecond} grants a second for ${steady.seconds} s`,
    figures: [],
    ratios,
    wanted: { "p50, ms": "at most 20, aim 8", "p99, ms": "at most 100, aim 40" },
  } satisfies Result;
}

async function now(database: BenchDatabase): Promise<string> {
  const { rows } = await database.open("notification", 1).query("select clock_timestamp()::text as now");
  return rows[0].now;
}

/** Waits until all are SENT; both times are the database's, and the first is the start of the grant's transaction. */
async function delays(database: BenchDatabase, since: string, count: number): Promise<{ p50: number; p99: number }> {
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

export const round = (value: number) => Math.round(value * 100) / 100;

export const ratio = (over: Figure | undefined, under: Figure | undefined) =>
  round((over?.perSecond ?? Number.NaN) / (under?.perSecond ?? Number.NaN));
