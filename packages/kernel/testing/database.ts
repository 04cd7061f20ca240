/**
 * A migrated database for one test. Cloning a template and dropping the clone costs 200 ms, so a database in which a test
 * has only changed rows is emptied and reused; one with a changed schema is dropped.
 *
 * The test server has
 *   template_<digest>   one for each set of migrations and tables, created once
 *   test_<random>       clones of them: in use, or listed in `todoke_free_databases` of the server's own database
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { type Db, type DbOptions, type MigrationSet, migrate, openDb, readMigrations } from "../db/index.ts";
import { kernelMigrations } from "../migrations/index.ts";
import { countMade } from "./count-made.ts";

export interface TestDatabase extends AsyncDisposable {
  readonly db: Db;
  readonly url: string;
  /** Another pool on the same database, closed with it. To PostgreSQL it is another process. */
  open(options?: Partial<DbOptions>): Db;
}

export interface TestDatabaseOptions {
  readonly schema?: string;
  readonly sets?: readonly MigrationSet[];
  /** Further schemas with their migrations, for tests of several services on one database. */
  readonly schemas?: Readonly<Record<string, readonly MigrationSet[]>>;
  /** SQL that creates tables of the tests themselves, in `schema`, after the migrations. */
  readonly tables?: string;
  /** Default options of its pools. */
  readonly pools?: Partial<DbOptions>;
}

/** For tests that do not test timeouts: a busy machine must not fail them. */
export const longTimeouts = {
  connectTimeoutMs: 120_000,
  statementTimeoutMs: 120_000,
  lockTimeoutMs: 120_000,
  idleInTransactionTimeoutMs: 120_000,
};

/** Creates or reuses a database. Disposing it closes its pools, ends other connections, and empties or drops it. */
export async function testDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { schema = "app", sets = [kernelMigrations], schemas = {}, tables, pools: defaults } = options;
  const server = serverUrl();
  const template = await migratedTemplate(server, {
    schemas: { ...schemas, [schema]: sets },
    sql: tables ? `set search_path to ${schema}; ${tables}` : "",
  });
  const name = (await takeFree(server, template)) ?? (await clone(server, template));
  const url = withDatabase(server, name);
  const pools: Db[] = [];
  const open = (more: Partial<DbOptions> = {}) => {
    const pool = openDb({ url, schema, connectTimeoutMs: 60_000, ...defaults, ...more });
    pools.push(pool);
    return pool;
  };
  return {
    db: open(),
    url,
    open,
    async [Symbol.asyncDispose]() {
      await Promise.all(pools.map((pool) => (pool.ended ? undefined : pool.end())));
      await returnToPool(server, { name, template });
    },
  };
}

async function takeFree(server: string, template: string): Promise<string | undefined> {
  const { rows } = await asAdmin(server, (admin) =>
    admin.query(
      `delete from todoke_free_databases
        where name = (select name from todoke_free_databases where template = $1 limit 1 for update skip locked)
       returning name`,
      [template],
    ),
  );
  return rows[0]?.name;
}

async function clone(server: string, template: string): Promise<string> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  await asAdmin(server, (admin) => admin.query(`create database ${name} template ${template}`));
  countMade("databases");
  return name;
}

/** Lists the database as free if it is in its initial state; drops it otherwise. */
async function returnToPool(server: string, { name, template }: { name: string; template: string }): Promise<void> {
  await asAdmin(server, async (admin) => {
    await admin.query(`select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1`, [name]);
    if (await reset(withDatabase(server, name)))
      await admin.query(`insert into todoke_free_databases (name, template) values ($1, $2)`, [name, template]);
    else await admin.query(`drop database if exists ${name} with (force)`);
  });
}

/** Returns false if the database cannot be reused. */
async function reset(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    const { rows } = await client.query(`select todoke_testing.reset() as is_reset`);
    // Truncating counts as a table scan: flush the statistics, then reset them.
    await client.query(`select pg_stat_force_next_flush()`);
    await client.query(`select pg_stat_reset()`);
    return rows[0].is_reset;
  } catch {
    return false; // The test has dropped or renamed what the reset needs.
  } finally {
    await client.end().catch(() => {});
  }
}

interface Template {
  readonly schemas: Readonly<Record<string, readonly MigrationSet[]>>;
  readonly sql: string;
}

/** The template is named after the digest of its SQL and created by the first process that needs it. */
async function migratedTemplate(server: string, template: Template): Promise<string> {
  const digest = createHash("sha256").update(resetSql + template.sql);
  for (const [schema, sets] of Object.entries(template.schemas).sort())
    digest.update(schema + (await Promise.all(sets.map(readMigrations))).flat().map((f) => f.set + f.checksum));
  const name = `template_${digest.digest("hex").slice(0, 16)}`;
  const created = templates.get(name) ?? createTemplate(server, name, template).then(() => name);
  templates.set(name, created);
  return created;
}

const templates = new Map<string, Promise<string>>();
const resetSql = readFileSync(new URL("./reset.sql", import.meta.url), "utf8");

async function createTemplate(server: string, name: string, { schemas, sql }: Template): Promise<void> {
  await asAdmin(server, async (admin) => {
    const lock = `hashtextextended('todoke test template', 0)`;
    await admin.query(`select pg_advisory_lock(${lock})`);
    try {
      await admin.query(
        `create table if not exists todoke_free_databases (name text primary key, template text not null)`,
      );
      const { rowCount } = await admin.query(`select from pg_database where datname = $1`, [name]);
      if (rowCount) return;
      // Created under a temporary name, so that a template that exists is complete.
      const draft = `draft_${randomBytes(8).toString("hex")}`;
      await admin.query(`create database ${draft}`);
      const db = openDb({ url: withDatabase(server, draft) });
      try {
        for (const [schema, sets] of Object.entries(schemas)) await migrate(db, { schema, sets });
        await db.query(sql);
        await db.query(resetSql);
      } finally {
        await db.end();
      }
      await admin.query(`alter database ${draft} rename to ${name}`);
    } finally {
      await admin.query(`select pg_advisory_unlock(${lock})`);
    }
  });
}

function serverUrl(): string {
  const url = process.env.TEST_POSTGRES_URL;
  if (!url)
    throw new Error("TEST_POSTGRES_URL is not set: run the tests with `npm test`, which starts a server for them");
  return url;
}

function withDatabase(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Open between tests; they do not keep the process alive. */
const admins = new Map<string, pg.Pool>();

async function asAdmin<T>(server: string, work: (admin: pg.PoolClient) => Promise<T>): Promise<T> {
  const pool = admins.get(server) ?? new pg.Pool({ connectionString: server, allowExitOnIdle: true });
  if (!admins.has(server)) pool.on("error", () => {}); // The server was stopped.
  admins.set(server, pool);
  const admin = await pool.connect();
  let failure: unknown;
  try {
    return await work(admin);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    admin.release(failure !== undefined);
  }
}
