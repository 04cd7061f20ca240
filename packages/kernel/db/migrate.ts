/**
 * Migrates a schema: numbered SQL files, each run once, forward only.
 *
 * Any number of processes may call it at the same time; one migrates and the others find nothing to do. Before it changes
 * anything, it rejects files that were edited after they ran and a database that a newer build has migrated.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { directUrlOf } from "./database-url.ts";
import { getSqlState } from "./errors.ts";
import { acquireClient, type Db, identifier, releaseClient } from "./pool.ts";

/** The files of one owner ("kernel", "entitlement") in one folder: 0001_outbox.sql, 0002_… */
export interface MigrationSet {
  readonly name: string;
  readonly dir: URL;
}

export interface Migration {
  readonly set: string;
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

export type AppliedMigration = Pick<Migration, "set" | "version" | "name">;

export interface MigrateOptions {
  readonly schema: string;
  readonly sets: readonly MigrationSet[];
  /** Returns what would run and changes nothing. */
  readonly dryRun?: boolean;
  /** How long to wait for another process that is migrating the same schema. */
  readonly waitMs?: number;
}

/** The files and the database do not fit together. The message says what to do. */
export class MigrationError extends Error {
  override readonly name = "Unmigratable";
}

const fileName = /^(\d{4})_([a-z0-9_]+)\.sql$/;

/** Reads the files of a set in order. Rejects gaps and duplicate numbers. */
export async function readMigrations(set: MigrationSet): Promise<Migration[]> {
  const files = (await readdir(set.dir)).filter((file) => file.endsWith(".sql")).sort();
  return Promise.all(files.map((file, index) => readMigration(set, file, index + 1)));
}

async function readMigration(set: MigrationSet, file: string, expected: number): Promise<Migration> {
  const [, digits, name] = fileName.exec(file) ?? [];
  if (!digits || !name) throw new MigrationError(`${set.name}/${file}: name it like 0001_what_it_does.sql`);
  const version = Number(digits);
  if (version !== expected) {
    throw new MigrationError(
      `${set.name}/${file}: expected number ${expected}; numbers must have no gaps and no duplicates`,
    );
  }
  const sql = await readFile(new URL(file, folder(set.dir)), "utf8");
  return { set: set.name, version, name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
}

function folder(dir: URL): URL {
  return dir.href.endsWith("/") ? dir : new URL(`${dir.href}/`);
}

/**
 * The URL to migrate by. A migration needs a session, which PgBouncer in transaction mode does not give; a dry run does not.
 */
export function migrationUrl(url: string, { dryRun }: { readonly dryRun: boolean }): string {
  const direct = directUrlOf(url) ?? (dryRun ? url : undefined);
  if (direct !== undefined) return direct;
  throw new MigrationError(
    "migrations do not run through PgBouncer: set the direct URL of the database (DATABASE_DIRECT_URL).",
  );
}

/** Runs the missing migrations and returns them, in order. */
export async function migrate(db: Db, options: MigrateOptions): Promise<AppliedMigration[]> {
  const migrations = (await Promise.all(options.sets.map(readMigrations))).flat();
  const client = await acquireClient(db);
  try {
    // A dry run is one transaction, so that it also works through PgBouncer and leaves no setting behind.
    if (options.dryRun) await client.query("begin");
    await client.query(`set statement_timeout = 0; set idle_in_transaction_session_timeout = 0`);
    await lockSchema(client, options);
    const missing = await applyMissing(client, migrations, options);
    if (options.dryRun) await client.query("rollback");
    return missing;
  } finally {
    // Closed, because the session has its own settings and holds the lock.
    releaseClient(client, true);
  }
}

/** A session lock outlives the transaction of each migration and ends with the process. */
async function lockSchema(client: pg.PoolClient, { schema, dryRun, waitMs = 60_000 }: MigrateOptions): Promise<void> {
  const lock = dryRun ? "pg_advisory_xact_lock" : "pg_advisory_lock";
  await client.query(`set lock_timeout = ${Math.round(waitMs)}`);
  await client.query(`select ${lock}(hashtextextended($1, 0))`, [`todoke migrate ${schema}`]).catch((error) => {
    if (getSqlState(error) !== "55P03") throw error;
    throw new MigrationError(
      `schema ${schema}: another process has been migrating it for ${waitMs} ms. Try again later.`,
    );
  });
}

async function applyMissing(client: pg.PoolClient, migrations: Migration[], options: MigrateOptions) {
  const schema = identifier(options.schema);
  await client.query(`set search_path to ${schema}`);
  const recorded = await readRecorded(client, schema);
  const unrecorded = new Set(missingFrom(migrations, recorded, options));
  const invalid = await invalidIndexes(client);
  const missing = migrations.filter((each) => unrecorded.has(each) || invalid.has(concurrentIndexName(each) ?? ""));
  if (options.dryRun || missing.length === 0) return missing.map(toApplied);
  await createRecords(client, schema);
  for (const migration of missing) await applyOne(client, migration);
  return missing.map(toApplied);
}

const toApplied = ({ set, version, name }: Migration): AppliedMigration => ({ set, version, name });

interface Recorded {
  readonly set: string;
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
}

async function readRecorded(client: pg.PoolClient, schema: string): Promise<Recorded[]> {
  const { rows } = await client.query(`select to_regclass($1) is not null as exists`, [`${schema}.schema_migrations`]);
  if (!rows[0]?.exists) return [];
  const recorded = await client.query<Recorded>(
    `select set_name as set, version, name, checksum from schema_migrations order by set_name, version`,
  );
  return recorded.rows;
}

/** An interrupted build leaves an invalid index: it costs writes, serves no query and enforces nothing. */
async function invalidIndexes(client: pg.PoolClient): Promise<Set<string>> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
      where not i.indisvalid and c.relkind = 'i' and pg_table_is_visible(c.oid)`,
  );
  return new Set(rows.map((row) => row.name));
}

const concurrentIndex =
  /^\s*create\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?(?:\w+\.)?(\w+)\s/im;

/** The index that a migration builds outside a transaction. */
function concurrentIndexName({ sql }: Migration): string | undefined {
  return sql.startsWith(outsideTransaction) ? concurrentIndex.exec(sql)?.[1]?.toLowerCase() : undefined;
}

async function createRecords(client: pg.PoolClient, schema: string): Promise<void> {
  await client.query(`create schema if not exists ${schema}`);
  await client.query(
    `create table if not exists schema_migrations (
       set_name   text not null,
       version    int not null,
       name       text not null,
       checksum   text not null,
       applied_at timestamptz not null default now(),
       primary key (set_name, version)
     )`,
  );
}

/** Returns the migrations that are not recorded. Throws unless the files continue the records. */
function missingFrom(migrations: Migration[], recorded: Recorded[], { schema, sets }: MigrateOptions): Migration[] {
  const missing = new Map(migrations.map((migration) => [`${migration.set} ${migration.version}`, migration]));
  const ours = new Set(sets.map((set) => set.name));
  for (const record of recorded.filter((r) => ours.has(r.set))) {
    const file = `${record.set}/${String(record.version).padStart(4, "0")}_${record.name}.sql`;
    const migration = missing.get(`${record.set} ${record.version}`);
    if (!migration) {
      throw new MigrationError(
        `schema ${schema} has run ${file}, which this build does not have: a newer build migrated it. Deploy that build or a newer one.`,
      );
    }
    if (migration.checksum !== record.checksum) {
      throw new MigrationError(
        `${file} was edited after it ran in schema ${schema}. Put the file back as it was, and the change into a new file.`,
      );
    }
    missing.delete(`${record.set} ${record.version}`);
  }
  return [...missing.values()];
}

// A migration must not wait long for a lock: all other statements on the table would queue behind it.
const lockTimeoutMs = 2_000;
const lockAttemptsMax = 15;
const outsideTransaction = "-- migrate: no transaction";

async function applyOne(client: pg.PoolClient, migration: Migration): Promise<void> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await (migration.sql.startsWith(outsideTransaction) ? runOutsideTransaction : runInTransaction)(
        client,
        migration,
      );
    } catch (cause) {
      if (getSqlState(cause) === "55P03" && attempts < lockAttemptsMax) {
        await sleep(500 + Math.random() * 1_000);
        continue;
      }
      const { set, version, name } = migration;
      throw new Error(`migration ${set}/${String(version).padStart(4, "0")}_${name}.sql: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
}

async function runInTransaction(client: pg.PoolClient, migration: Migration): Promise<void> {
  try {
    await client.query(`begin; set local lock_timeout = ${lockTimeoutMs}`);
    await client.query(migration.sql);
    await record(client, migration);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
}

/**
 * For a statement that PostgreSQL rejects inside a transaction (create index concurrently). It must be safe to run twice.
 * The invalid index of an interrupted build is dropped first, or `if not exists` would accept it.
 */
async function runOutsideTransaction(client: pg.PoolClient, migration: Migration): Promise<void> {
  const index = concurrentIndexName(migration);
  if (index !== undefined && (await invalidIndexes(client)).has(index)) {
    await client.query(`drop index concurrently ${identifier(index)}`);
  }
  await client.query(migration.sql);
  await record(client, migration);
}

async function record(client: pg.PoolClient, { set, version, name, checksum }: Migration): Promise<void> {
  await client.query(
    `insert into schema_migrations (set_name, version, name, checksum) values ($1, $2, $3, $4)
     on conflict (set_name, version) do nothing`,
    [set, version, name, checksum],
  );
}
