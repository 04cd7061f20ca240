/**
 * What tests of the kernel, of services and of library users need: a database of their own, fast, and ids that can be
 * told apart. Needs a PostgreSQL server at TEST_POSTGRES_URL (`npm test` starts one).
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Db, type DbOptions, type MigrationSet, migrate, migrationsOf, openDb } from "../db/index.ts";

import { kernelMigrations } from "../migrations/index.ts";

export { freePort } from "./free-port.ts";
export { openWire, type Wire } from "./wire.ts";

export interface TestDatabase extends AsyncDisposable {
  readonly db: Db;
  readonly url: string;
  /** Another pool on the same database, closed with it: another process, as far as PostgreSQL can tell. */
  open(options?: Partial<DbOptions>): Db;
}

export interface TestDatabaseOptions {
  readonly schema?: string;
  readonly sets?: readonly MigrationSet[];
  /** What its pools are opened with, where nothing else is said. */
  readonly pools?: Partial<DbOptions>;
}

/** For tests that are not about how long anybody waits for a connection, a statement or a lock: a machine may be busy. */
export const patient = {
  connectTimeoutMs: 120_000,
  statementTimeoutMs: 120_000,
  lockTimeoutMs: 120_000,
  idleInTransactionTimeoutMs: 120_000,
};

/** A migrated database that only this test knows, cloned from a template. Disposing it drops it. */
export async function testDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { schema = "app", sets = [kernelMigrations], pools: usual } = options;
  const server = serverUrl();
  const template = await migratedTemplate(server, schema, sets);
  const name = `test_${randomBytes(8).toString("hex")}`;
  await asAdmin(server, (admin) => admin.query(`create database ${name} template ${template}`));
  const url = withDatabase(server, name);
  const pools: Db[] = [];
  const open = (more: Partial<DbOptions> = {}) => {
    // A connection that is late on a busy machine is no failure.
    const pool = openDb({ url, schema, connectTimeoutMs: 60_000, ...usual, ...more });
    pools.push(pool);
    return pool;
  };
  return {
    db: open(),
    url,
    open,
    async [Symbol.asyncDispose]() {
      await Promise.all(pools.map((pool) => (pool.ended ? undefined : pool.end())));
      await asAdmin(server, (admin) => admin.query(`drop database if exists ${name} with (force)`));
    },
  };
}

/** The template is named after what is in its migrations, made once per server, by whoever comes first. */
async function migratedTemplate(server: string, schema: string, sets: readonly MigrationSet[]): Promise<string> {
  const files = (await Promise.all(sets.map(migrationsOf))).flat();
  const digest = createHash("sha256").update(schema + files.map((f) => f.set + f.checksum).join());
  const name = `template_${digest.digest("hex").slice(0, 16)}`;
  const cached = templates.get(name);
  if (cached) return cached;
  const made = makeTemplate(server, name, { schema, sets }).then(() => name);
  templates.set(name, made);
  return made;
}

const templates = new Map<string, Promise<string>>();

async function makeTemplate(
  server: string,
  name: string,
  options: Pick<Required<TestDatabaseOptions>, "schema" | "sets">,
): Promise<void> {
  await asAdmin(server, async (admin) => {
    await admin.query(`select pg_advisory_lock(hashtextextended('test template ${name}', 0))`);
    const { rowCount } = await admin.query(`select from pg_database where datname = $1`, [name]);
    if (rowCount) return;
    // Made under another name first: a template that exists is complete, whoever dies in between.
    const draft = `draft_${randomBytes(8).toString("hex")}`;
    await admin.query(`create database ${draft}`);
    const db = openDb({ url: withDatabase(server, draft) });
    await migrate(db, options).finally(() => db.end());
    await admin.query(`alter database ${draft} rename to ${name}`);
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

async function asAdmin<T>(server: string, work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}

/** Ids that a reader of a failed test can tell apart: fixedId(1) is 00000000-0000-7000-8000-000000000001. */
export function fixedId(n: number): string {
  return `00000000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** Waits for a state, never for a time: asks until `condition` holds, and fails saying what was waited for. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  { withinMs = 60_000 }: { withinMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await sleep(5);
  }
}
