/** Entitlement and notification through a real PgBouncer in transaction mode, with fewer connections to the server than they have. */
import { hash } from "node:crypto";
import { openPostgresBus } from "@todoke/bus-postgres";
import { type Engine, EngineNotFound, findPgbouncer } from "@todoke/engines";
import * as entitlement from "@todoke/entitlement";
import { openDb, transaction } from "@todoke/kernel/db";
import { type TestDatabase, testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { type BusRequest, type Env, readServerUrl } from "@todoke/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkDatabase } from "./doctor/database.ts";

const poolSize = 3;
let bouncer: Engine;

beforeAll(async () => {
  const found = await findPgbouncer(process.env.TEST_POSTGRES_URL ?? "", {
    settings: { default_pool_size: String(poolSize), max_client_conn: "200" },
  });
  if (found instanceof EngineNotFound) throw new Error(found.message);
  bouncer = found;
}, 240_000);
afterAll(() => bouncer[Symbol.asyncDispose](), 240_000);

/** The URL of the same database through PgBouncer. */
function pooled(direct: string): string {
  const url = new URL(direct);
  url.host = new URL(bouncer.url).host;
  return url.href;
}

const settings = (t: TestDatabase, more: Env): Env => ({
  TODOKE_API_KEYS: `shop=entitlements:write+read=${hash("sha256", "tdk_shop", "hex")}`,
  LOG_LEVEL: "silent",
  ENTITLEMENT_PORT: "0",
  NOTIFICATION_PORT: "0",
  DATABASE_URL: pooled(t.url),
  ...more,
});

/** `name` makes the URLs of copies differ, so that they share no wake-up connection, as in processes of their own. */
const directTo = (t: TestDatabase, name: string): Env => ({
  DATABASE_DIRECT_URL: `${t.url}?fallback_application_name=${name}`,
});

const openBusOf = (pollMs: number) => ({
  openBus: (name: string, { url, onError, onInfo }: BusRequest) =>
    openPostgresBus({ url, name, pollMs, onError, onInfo }),
});

async function grant(url: string, n: number): Promise<number> {
  const response = await fetch(`${url}/v1/entitlements/grants`, {
    method: "POST",
    headers: { authorization: "Bearer tdk_shop", "idempotency-key": `k-${n}`, "content-type": "application/json" },
    body: JSON.stringify({
      user_id: `u_${n % 7}`,
      stock_keeping_unit: `item${n}`,
      reason: "purchase",
      purchase_id: `p_${n}`,
    }),
  });
  await response.text();
  return response.status;
}

async function countSent(t: TestDatabase): Promise<number> {
  const { rows } = await t.db.query(`select count(*)::int as n from notification.notifications where status = 'SENT'`);
  return rows[0]?.n;
}

test("every grant is sent exactly once, woken through the direct URL, and each statement finds its own schema", async () => {
  await using t = await testDatabase({ sets: [] });
  const grants = 60;
  // Polls come too late for this test: only wake-ups can be in time.
  const polls = { ENTITLEMENT_POLL_MS: "60000", NOTIFICATION_POLL_MS: "60000" };
  const first = settings(t, { ...polls, ...directTo(t, "first"), ENTITLEMENT_ROLES: "api" });
  const second = settings(t, { ...polls, ...directTo(t, "second"), ENTITLEMENT_ROLES: "relay,maintenance" });
  for (const service of [entitlement, notification]) await service.migrate(first, { dryRun: false });
  const bus = openBusOf(600_000);
  await using api = await entitlement.start(first, bus);
  await using _relay = await entitlement.start(second, bus);
  await using _one = await notification.start(first, bus);
  await using _two = await notification.start(second, bus);

  await using strangers = new AsyncDisposableStack();
  const open = (schema?: string) => {
    const url = readServerUrl(first, "DATABASE_URL") ?? "";
    const db = openDb({ url, poolMax: 4, ...(schema && { schema }) });
    strangers.defer(() => db.end());
    return db;
  };
  const schemas = ["entitlement", "notification", undefined].map((schema) => ({ schema, db: open(schema) }));
  const seen = schemas.map(async ({ schema, db }) => {
    const found = new Set<string>();
    const ask = `select current_setting('search_path') as path, current_setting('enable_seqscan') as seqscan`;
    for (let n = 0; n < 60; n++) {
      const [alone, inside] = await Promise.all([db.query(ask), transaction(db, (tx) => tx.query(ask))]);
      for (const row of [...alone.rows, ...inside.rows]) found.add(`${row.path} ${row.seqscan}`);
    }
    expect([...found]).toEqual([`${schema ?? '"$user", public'} off`]);
  });
  const statuses = await Promise.all(Array.from({ length: grants }, (_, n) => grant(api.url, n)));
  expect(new Set(statuses)).toEqual(new Set([201]));
  expect(await grant(api.url, 0)).toBe(201); // a replay
  await Promise.all(seen);
  await until("every grant is sent", async () => (await countSent(t)) >= grants, { withinMs: 50_000 });
  const { rows } = await t.db.query(
    `select count(*)::int as n, count(distinct event_id)::int as events from notification.notifications`,
  );
  expect(rows).toEqual([{ n: grants, events: grants }]);
  const { rows: connections } = await t.db.query(
    `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and application_name in ('entitlement', 'notification')`,
  );
  expect(connections[0]?.n).toBeLessThanOrEqual(poolSize);
}, 120_000);

test("without a direct URL workers poll, migrations are refused with the reason, and doctor says both", async () => {
  await using t = await testDatabase({ sets: [] });
  const env = settings(t, { DATABASE_URL: `${pooled(t.url)}?pgbouncer=true` });
  await expect(entitlement.migrate(env, { dryRun: false })).rejects.toThrow(
    "migrations do not run through PgBouncer: set the direct URL of the database (DATABASE_DIRECT_URL)",
  );
  for (const service of [entitlement, notification])
    await service.migrate({ ...env, DATABASE_DIRECT_URL: t.url }, { dryRun: false });
  expect(await entitlement.migrate(env, { dryRun: true })).toEqual([]);
  await expect(openPostgresBus({ url: env.DATABASE_URL ?? "" })).rejects.toThrow(
    /migrations do not run through PgBouncer/,
  );
  await (await openPostgresBus({ url: t.url }))[Symbol.asyncDispose]();

  await using api = await entitlement.start(env, openBusOf(200));
  await using _ = await notification.start(env, openBusOf(200));
  expect(await grant(api.url, 1)).toBe(201);
  await until("it is sent", async () => (await countSent(t)) === 1);

  const check = (url: string) => checkDatabase({ name: "database", variable: "DATABASE_URL", url, services: 1 });
  const says = (found: Awaited<ReturnType<typeof check>>) =>
    found.map((each) => `${each.level}: ${each.says}`).join("\n");
  expect(says(await check(env.DATABASE_URL ?? ""))).toMatch(
    /warning: through PgBouncer without a direct URL: .* they poll/,
  );
  const complete = readServerUrl({ ...env, DATABASE_DIRECT_URL: t.url }, "DATABASE_URL") ?? "";
  expect(says(await check(complete))).toMatch(
    /ok: through PgBouncer; wake-ups and migrations use postgres:\/\/postgres@/,
  );
  expect(says(await check(complete))).not.toContain(new URL(t.url).password);
  // Undeclared.
  expect(says(await check(pooled(t.url)))).toMatch(
    /fault: .*PostgreSQL at \S+ is PgBouncer: add pgbouncer=true to the URL/,
  );
}, 120_000);
