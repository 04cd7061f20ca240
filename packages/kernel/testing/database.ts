/**
 * A migrated database that only one test knows. Cloning a template and dropping the clone costs 200 ms, so a database
 * that a test has only filled is emptied and used again; one whose tables a test has changed is dropped.
 *
 * On the test server there are
 *   template_<digest>   one for each set of migrations, made once
 *   test_<random>       clones of them: in use, or listed as free in `todoke_free_databases` of the server's own database
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { type Db, type DbOptions, type MigrationSet, migrate, migrationsOf, openDb } from "../db/index.ts";
import { kernelMigrations } from "../migrations/index.ts";
import { countMade } from "./count-made.ts";

export interface TestDatabase extends AsyncDisposable {
  readonly db: Db;
  readonly url: string;
  /** Another pool on the same database, closed with it: another process, as far as PostgreSQL can tell. */
  open(options?: Partial<DbOptions>): Db;
}

export interface TestDatabaseOptions {
  readonly schema?: string;
  readonly sets?: readonly MigrationSet[];
  /** Further schemas with their migrations, for a test of several services on one database. */
  readonly schemas?: Readonly<Record<string, readonly MigrationSet[]>>;
  /** Options of its pools, unless `open` is given others. */
  readonly pools?: Partial<DbOptions>;
}

/** For tests that are not about how long a connection, a statement or a lock is waited for: a machine may be busy. */
export const patient = {
  connectTimeoutMs: 120_000,
  statementTimeoutMs: 120_000,
  lockTimeoutMs: 120_000,
  idleInTransactionTimeoutMs: 120_000,
};

/** Disposing it closes its pools, ends every other connection to it, and empties or drops it. */
export async function testDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { schema = "app", sets = [kernelMigrations], schemas = {}, pools: defaults } = options;
  const server = serverUrl();
  const template = await migratedTemplate(server, { ...schemas, [schema]: sets });
  const name = (await takeFree(server, template)) ?? (await clone(server, template));
  const url = withDatabase(server, name);
  const pools: Db[] = [];
  const open = (more: Partial<DbOptions> = {}) => {
    // A connection that is late on a busy machine is no failure.
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
      await giveBack(server, { name, template });
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

/** Only a database that is known to be as it was made is listed as free. */
async function giveBack(server: string, { name, template }: { name: string; template: string }): Promise<void> {
  await asAdmin(server, async (admin) => {
    await admin.query(`select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1`, [name]);
    if (await reset(withDatabase(server, name)))
      await admin.query(`insert into todoke_free_databases (name, template) values ($1, $2)`, [name, template]);
    else await admin.query(`drop database if exists ${name} with (force)`);
  });
}

/** False if the database cannot be used again. */
async function reset(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    const { rows } = await client.query(`select todoke_testing.reset() as is_reset`);
    // To empty a table counts as a scan of it: counted first, and forgotten then.
    await client.query(`select pg_stat_force_next_flush()`);
    await client.query(`select pg_stat_reset()`);
    return rows[0].is_reset;
  } catch {
    return false; // The test has dropped or renamed what is needed for it.
  } finally {
    await client.end().catch(() => {});
  }
}

type Schemas = Readonly<Record<string, readonly MigrationSet[]>>;

/** The template is named after what is in its migrations, and made by the first process that needs it. */
async function migratedTemplate(server: string, schemas: Schemas): Promise<string> {
  const digest = createHash("sha256").update(resetSql);
  for (const [schema, sets] of Object.entries(schemas).sort())
    digest.update(schema + (await Promise.all(sets.map(migrationsOf))).flat().map((f) => f.set + f.checksum));
  const name = `template_${digest.digest("hex").slice(0, 16)}`;
  const made = templates.get(name) ?? makeTemplate(server, name, schemas).then(() => name);
  templates.set(name, made);
  return made;
}

const templates = new Map<string, Promise<string>>();
const resetSql = readFileSync(new URL("./reset.sql", import.meta.url), "utf8");

async function makeTemplate(server: string, name: string, schemas: Schemas): Promise<void> {
  await asAdmin(server, async (admin) => {
    const lock = `hashtextextended('todoke test template', 0)`;
    await admin.query(`select pg_advisory_lock(${lock})`);
    try {
      await admin.query(
        `create table if not exists todoke_free_databases (name text primary key, template text not null)`,
      );
      const { rowCount } = await admin.query(`select from pg_database where datname = $1`, [name]);
      if (rowCount) return;
      // Made under another name first: a template that exists is complete, whenever a process died.
      const draft = `draft_${randomBytes(8).toString("hex")}`;
      await admin.query(`create database ${draft}`);
      const db = openDb({ url: withDatabase(server, draft) });
      try {
        for (const [schema, sets] of Object.entries(schemas)) await migrate(db, { schema, sets });
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

/** Kept open between tests, and closed when nothing else keeps the process alive. */
const admins = new Map<string, pg.Pool>();

async function asAdmin<T>(server: string, work: (admin: pg.PoolClient) => Promise<T>): Promise<T> {
  const pool = admins.get(server) ?? new pg.Pool({ connectionString: server, allowExitOnIdle: true });
  if (!admins.has(server)) pool.on("error", () => {}); // Its server was stopped.
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
