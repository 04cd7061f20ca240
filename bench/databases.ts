/** Databases for the bench with the tables of entitlement and notification: empty, or with millions of old rows. */
import { hash } from "node:crypto";
import { migrate as migrateEntitlement } from "@todoke/entitlement";
import { type Db, openDb } from "@todoke/kernel/db";
import { migrate as migrateNotification } from "@todoke/notification";

export interface BenchDatabase extends AsyncDisposable {
  readonly url: string;
  /** Opens a pool for a schema; disposing the database closes it. */
  open(schema: string, poolMax?: number): Db;
  /** Creates another, empty database on the same server. */
  openSibling(): Promise<BenchDatabase>;
}

/** The API key of the bench, with every scope that it needs. */
export const apiKey = "tdk_bench";
const scopes = "entitlements:write+points:write+orders:write+matchmaking:write+read";
// The rate of the one key is counted, but never refuses.
export const env = {
  TODOKE_KEY_PER_SECOND: "1000000",
  TODOKE_API_KEYS: `bench=${scopes}=${hash("sha256", apiKey, "hex")}`,
};

type Migrate = typeof migrateEntitlement;

let databaseCount = 0;

/** Creates a database; disposing it drops it. `migrations` adds the tables of further services. */
export async function openDatabase(serverUrl: string, ...migrations: Migrate[]): Promise<BenchDatabase> {
  const database = `bench_${process.pid}_${databaseCount++}`;
  const admin = openDb({ url: serverUrl, poolMax: 1 });
  await admin.query(`create database ${database}`);
  const url = Object.assign(new URL(serverUrl), { pathname: `/${database}` }).href;
  for (const migrate of [migrateEntitlement, migrateNotification, ...migrations])
    await migrate({ DATABASE_URL: url }, { dryRun: false });
  const pools: Db[] = [];
  return {
    url,
    openSibling: () => openDatabase(serverUrl),
    open(schema, poolMax = 4) {
      const pool = openDb({ url, schema, poolMax, statementTimeoutMs: 600_000 });
      pools.push(pool);
      return pool;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(pools.map((pool) => pool.end()));
      await admin.query(`drop database ${database} with (force)`);
      await admin.end();
    },
  };
}

/** Rows are inserted in parts, to show progress. */
const rowsPerInsert = 500_000;

/**
 * Old rows as after years of use: all finished, none old enough for retention, random user ids and ascending event ids.
 * They are as large as new rows. Smaller ones would leave room on old pages, and every insert would go to another page.
 */
const oldRows: Readonly<Record<string, string>> = {
  "entitlement.entitlements": `(user_id, stock_keeping_unit, status, source, source_id)
    select 'u_old_' || md5(i::text), 'item' || i % 100, 'ACTIVE', 'purchase', 'p_' || i`,
  "entitlement.idempotency_keys": `(scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
    select 'old POST /v1/entitlements/grants', md5(i::text), sha256(i::text::bytea), 201, 'application/json; charset=utf-8',
           convert_to(repeat('x', 150), 'utf8'), now() + interval '24 hours'`,
  "entitlement.entitlement_audit": `(user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
    select 'u_old_' || md5(i::text), 'item' || i % 100, 1, 'GRANT', 'purchase', 'p_' || i, 'old', uuidv7()`,
  "entitlement.outbox_events": `(event_id, event_type, subject, aggregate_key, version, payload, status, published_at, attempt_count)
    select uuidv7(), 'EntitlementGranted', 'entitlement.events', 'u_old_' || md5(i::text) || '/item', 1,
           jsonb_build_object('x', repeat('x', 150)), 'PUBLISHED', now(), 1`,
  "notification.processed_events": `(consumer, event_id) select 'notification', uuidv7()`,
  "notification.notifications": `(notification_id, event_id, user_id, event_type, text, occurred_at, status, sent_at, attempt_count)
    select uuidv7(), uuidv7(), 'u_old_' || md5(i::text), 'EntitlementGranted',
           jsonb_build_object('en', 'You can now use item1.', 'ja', 'item1 をご利用いただけるようになりました。'), now(), 'SENT',
           now(), 1`,
};

/** Finishes the jobs that a benchmark left, then vacuums and checkpoints, so that neither runs during the next one. */
export async function finishAndVacuum({ open }: BenchDatabase): Promise<void> {
  const db = open("public", 1);
  await db.query(
    `update entitlement.outbox_events set status = 'PUBLISHED', published_at = now() where status = 'PENDING'`,
  );
  await db.query(`update notification.notifications set status = 'SENT', sent_at = now() where status = 'PENDING'`);
  for (const table of Object.keys(oldRows)) await db.query(`vacuum analyze ${table}`);
  await db.query("checkpoint");
}

/** Fills every table that grows with use. Takes minutes for millions of rows. */
export async function fillWithOldRows({ open }: BenchDatabase, rows: number): Promise<void> {
  const db = open("public", 2);
  let written = 0;
  const total = rows * Object.keys(oldRows).length;
  const fill = async ([table, columns]: [string, string]) => {
    for (let from = 1; from <= rows; from += rowsPerInsert) {
      const to = Math.min(rows, from + rowsPerInsert - 1);
      await db.query(`insert into ${table} ${columns} from generate_series(${from}, ${to}) i`);
      written += to - from + 1;
      process.stderr.write(`  old rows: ${(written / 1e6).toFixed(1)} of ${total / 1e6} million …\r`);
    }
  };
  const queue = Object.entries(oldRows);
  const filler = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await fill(next);
  };
  await Promise.all([filler(), filler()]);
  process.stderr.write(`${" ".repeat(60)}\r`);
}
