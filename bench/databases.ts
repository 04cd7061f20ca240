/** Databases of the bench: with the tables of both services, empty, or with millions of rows from years of service. */
import { hash } from "node:crypto";
import { migrate as migrateEntitlement } from "@todoke/entitlement";
import { type Db, openDb } from "@todoke/kernel/db";
import { migrate as migrateNotification } from "@todoke/notification";

export interface BenchDatabase extends AsyncDisposable {
  readonly url: string;
  /** A pool for a service's tables; it ends with the database. */
  open(schema: string, poolMax?: number): Db;
  /** A further one on the same server, empty. */
  another(): Promise<BenchDatabase>;
}

/** The one key of the bench, and its hash for the services: it may do all that is measured. */
export const apiKey = "tdk_bench";
const scopes = "entitlements:write+points:write+orders:write+read";
export const env = { TODOKE_API_KEYS: `bench=${scopes}=${hash("sha256", apiKey, "hex")}` };

let made = 0;

/** A database of its own on the server, gone when it is disposed. */
export async function openDatabase(serverUrl: string): Promise<BenchDatabase> {
  const database = `bench_${process.pid}_${made++}`;
  const admin = openDb({ url: serverUrl, poolMax: 1 });
  await admin.query(`create database ${database}`);
  const url = Object.assign(new URL(serverUrl), { pathname: `/${database}` }).href;
  await migrateEntitlement({ DATABASE_URL: url }, { dryRun: false });
  await migrateNotification({ DATABASE_URL: url }, { dryRun: false });
  const pools: Db[] = [];
  return {
    url,
    another: () => openDatabase(serverUrl),
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

/** A part of `rows` at a time, so that there is progress to show. */
const atOnce = 500_000;

/**
 * Old rows: all finished, none of an age to be removed, keys in no order (users) and in order (event ids), as they would
 * be after years. Statistics are fresh, as autovacuum would have them. Rows are as large as those of today: had each old
 * page room for one more of the new, every insert would go to another page, as it does once in the life of a table.
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

/**
 * Clears up after a measure: finishes what it left to be worked on, and does what autovacuum and the checkpointer would
 * do beside the next one.
 */
export async function clearUp({ open }: BenchDatabase): Promise<void> {
  const db = open("public", 1);
  await db.query(
    `update entitlement.outbox_events set status = 'PUBLISHED', published_at = now() where status = 'PENDING'`,
  );
  await db.query(`update notification.notifications set status = 'SENT', sent_at = now() where status = 'PENDING'`);
  for (const table of Object.keys(oldRows)) await db.query(`vacuum analyze ${table}`);
  await db.query("checkpoint");
}

/** Fills every table that grows with use. Some minutes for millions. */
export async function fillWithOldRows({ open }: BenchDatabase, rows: number): Promise<void> {
  const db = open("public", 2);
  let written = 0;
  const total = rows * Object.keys(oldRows).length;
  const fill = async ([table, columns]: [string, string]) => {
    for (let from = 1; from <= rows; from += atOnce) {
      const to = Math.min(rows, from + atOnce - 1);
      await db.query(`insert into ${table} ${columns} from generate_series(${from}, ${to}) i`);
      written += to - from + 1;
      process.stderr.write(`  old rows: ${(written / 1e6).toFixed(1)} of ${total / 1e6} million …\r`);
    }
  };
  const queue = Object.entries(oldRows);
  const lane = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await fill(next);
  };
  await Promise.all([lane(), lane()]);
  process.stderr.write(`${" ".repeat(60)}\r`);
}
