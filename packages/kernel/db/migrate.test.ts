import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { testDatabase, until } from "../testing/index.ts";
import { type Db, MigrationError, type MigrationSet, migrate } from "./index.ts";
import type { MigrateOptions } from "./migrate.ts";

async function setup(files: Record<string, string>) {
  const t = await testDatabase({ sets: [] });
  const dir = await mkdtemp(join(tmpdir(), "todoke-migrations-"));
  const write = async (more: Record<string, string>) => {
    for (const [name, sql] of Object.entries(more)) await writeFile(join(dir, name), sql);
  };
  await write(files);
  const set = (name: string) => ({ name, dir: pathToFileURL(`${dir}/`) });
  return {
    ...t,
    set,
    write,
    remove: (name: string) => rm(join(dir, name)),
    migrate: (db = t.db, more: Partial<MigrateOptions> = {}) =>
      migrate(db, { schema: "shop", sets: [set("shop")], ...more }),
    async [Symbol.asyncDispose]() {
      await rm(dir, { recursive: true });
      await t[Symbol.asyncDispose]();
    },
  };
}

const first = { "0001_things.sql": "create table things (id int primary key);" };

test("migrations run once, in order, and a second run does nothing", async () => {
  await using t = await setup({ ...first, "0002_more.sql": "alter table things add column name text;" });
  expect((await t.migrate()).map((m) => m.name)).toEqual(["things", "more"]);
  expect(await t.migrate()).toEqual([]);
  await t.write({
    "0003_index.sql": "-- migrate: no transaction\ncreate index concurrently if not exists by_name on things (name);",
  });
  expect((await t.migrate()).map((m) => m.version)).toEqual([3]);
  expect((await t.db.query(`select count(*) from shop.things`)).rows).toEqual([{ count: 0n }]);
});

test("concurrent processes run each migration once", async () => {
  await using t = await setup(first);
  const runs = await Promise.all(Array.from({ length: 8 }, () => t.migrate(t.open())));
  expect(runs.flat()).toEqual([{ set: "shop", version: 1, name: "things" }]);
});

test("a failed migration is rolled back, named in the error and can run again once fixed", async () => {
  await using t = await setup({ ...first, "0002_bad.sql": "create table half (id int); select 1 / 0;" });
  await expect(t.migrate()).rejects.toThrow("shop/0002_bad.sql: division by zero");
  expect((await t.db.query(`select to_regclass('shop.half') as half`)).rows).toEqual([{ half: null }]);
  await t.write({ "0002_bad.sql": "create table half (id int);" });
  expect((await t.migrate()).map((m) => m.version)).toEqual([2]);
});

test("a migration and its record commit together, or neither does", async () => {
  await using t = await setup(first);
  await t.migrate();
  await t.write({ "0002_more.sql": "create table more (id int);" });
  await t.db.query(`alter table shop.schema_migrations add constraint unrecordable check (version < 2)`);
  await expect(t.migrate()).rejects.toThrow("unrecordable");
  expect((await t.db.query(`select to_regclass('shop.more') as more`)).rows).toEqual([{ more: null }]);
  await t.db.query(`alter table shop.schema_migrations drop constraint unrecordable`);
  expect((await t.migrate()).map((m) => m.version)).toEqual([2]);
});

test("a migration outside a transaction is recorded only after it has run", async () => {
  await using t = await setup({ "0001_bad.sql": "-- migrate: no transaction\nselect 1 / 0;" });
  await expect(t.migrate()).rejects.toThrow("shop/0001_bad.sql: division by zero");
  expect((await t.db.query(`select from shop.schema_migrations`)).rowCount).toBe(0);
});

test("each set of a schema has its own numbers and records", async () => {
  await using t = await setup({ "0001_things.sql": "create table if not exists things (id int primary key);" });
  const [shop, billing] = ["shop", "billing"].map(t.set) as [MigrationSet, MigrationSet];
  expect(await t.migrate(t.db, { sets: [shop] })).toMatchObject([{ set: "shop" }]);
  expect(await t.migrate(t.db, { sets: [shop, billing] })).toMatchObject([{ set: "billing" }]);
  await t.write({ "0002_more.sql": "create table if not exists more (id int);" });
  expect(await t.migrate(t.db, { sets: [billing] })).toMatchObject([{ set: "billing", version: 2 }]);
  await t.remove("0002_more.sql");
  expect(await t.migrate(t.db, { sets: [shop] })).toEqual([]); // It ignores the later version of the other set.
});

test("a file that was edited after it ran is rejected with what to do", async () => {
  await using t = await setup(first);
  await t.migrate();
  await t.write({ "0001_things.sql": "create table things (id bigint primary key);" });
  const refusal = await t.migrate().catch((error) => error);
  expect(refusal).toBeInstanceOf(MigrationError);
  expect(refusal.message).toMatch(/shop\/0001_things\.sql was edited after it ran .* new file/);
});

test("a database that a newer build has migrated is rejected with what to do", async () => {
  await using t = await setup({ ...first, "0002_more.sql": "select 1;" });
  await t.migrate();
  await t.remove("0002_more.sql");
  await expect(t.migrate()).rejects.toThrow(/0002_more\.sql, which this build does not have: a newer build/);
});

test("gaps, duplicate numbers and malformed names are rejected", async () => {
  for (const name of ["0003_gap.sql", "0001_double.sql", "second.sql"]) {
    await using t = await setup({ ...first, [name]: "select 1;" });
    await expect(t.migrate()).rejects.toBeInstanceOf(MigrationError);
  }
});

test("a migration that waits for a lock does not block other statements for long", async () => {
  await using t = await setup(first);
  await t.migrate();
  await t.write({ "0002_more.sql": "alter table things add column name text;" });
  const reader = await t.open({ idleInTransactionTimeoutMs: 120_000 }).connect();
  await reader.query(`begin; select from shop.things`);
  const migrating = t.migrate();
  const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until("it waits for the reader", async () => (await t.db.query(waits)).rowCount === 1);
  // They wait for two seconds at most. If the migration kept its place in the lock queue, they would wait for the reader.
  const readers = t.open({ connectTimeoutMs: 20_000, lockTimeoutMs: 20_000, statementTimeoutMs: 20_000 });
  const others = await Promise.all(Array.from({ length: 20 }, () => readers.query(`select from shop.things`)));
  expect(others.length).toBe(20);
  await reader.query(`commit`);
  reader.release();
  expect((await migrating).length).toBe(1);
});

const index = {
  "0002_index.sql": "-- migrate: no transaction\ncreate index concurrently if not exists by_id on things (id, id);",
};
/** What a failed build leaves under the name of the index. */
async function insertInvalidIndex(db: Db, schema: string): Promise<void> {
  await db.query(`create table ${schema}.doubles as select 1 as id from generate_series(1, 2)`);
  const build = `create unique index concurrently by_id on ${schema}.doubles (id)`;
  await expect(db.query(build)).rejects.toThrow("by_id");
}

const isValid = `select indisvalid as valid, indisunique as unique from pg_index where indexrelid = to_regclass('shop.by_id')`;

test("an index build interrupted by a lock timeout is repeated until the index is valid", async () => {
  await using t = await setup(first);
  await t.migrate();
  await t.write(index);
  const writer = await t.open({ idleInTransactionTimeoutMs: 120_000 }).connect();
  await writer.query(`begin; insert into shop.things values (1)`);
  const migrating = t.migrate(t.open(), { waitMs: 200 }); // A build waits at most this long for the writer.
  const rows = async (sql: string) => (await t.db.query(sql)).rows;
  const builds = `select from pg_stat_activity where datname = current_database() and query like '%concurrently%' and state = 'active' and pid <> pg_backend_pid()`;
  await until("a build has failed and left its index", async () => {
    return (await rows(isValid))[0]?.valid === false && (await rows(builds)).length === 0;
  });
  await writer.query(`commit`);
  writer.release();
  expect((await migrating).map((m) => m.version)).toEqual([2]);
  expect(await rows(isValid)).toEqual([{ valid: true, unique: false }]);
});

test("a recorded migration with an invalid index runs again", async () => {
  await using t = await setup({ ...first, ...index });
  await t.migrate();
  await t.db.query(`drop index shop.by_id`);
  await insertInvalidIndex(t.db, "shop");
  expect((await t.db.query(isValid)).rows).toEqual([{ valid: false, unique: true }]);
  const again = [{ set: "shop", version: 2, name: "index" }];
  expect(await t.migrate(t.db, { dryRun: true })).toEqual(again);
  expect(await t.migrate()).toEqual(again);
  expect((await t.db.query(isValid)).rows).toEqual([{ valid: true, unique: false }]);
  expect(await t.migrate()).toEqual([]);
});

test("an invalid index of another schema or of a partitioned table is ignored", async () => {
  await using t = await setup({ ...first, ...index });
  await t.migrate();
  await t.db.query(`create schema another`);
  await insertInvalidIndex(t.db, "another");
  expect(await t.migrate()).toEqual([]);
  await t.db.query(`drop index shop.by_id; create table shop.parts (id int) partition by range (id);
    create table shop.part partition of shop.parts default; create index by_id on only shop.parts (id)`);
  expect((await t.db.query(isValid)).rows).toMatchObject([{ valid: false }]);
  expect(await t.migrate()).toEqual([]);
});
