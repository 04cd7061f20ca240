import type { Db } from "@todoke/kernel/db";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { migrate } from "../main.ts";
import { setup } from "../testing.ts";
import { startPartitionMaintenance } from "./partition-maintenance.ts";

const partitions = async (db: Db) =>
  (
    await db.query<{ month: string }>(
      `select relname::text as month from pg_inherits join pg_class on oid = inhrelid
        where inhparent = 'entitlement_audit'::regclass order by 1`,
    )
  ).rows.map((row) => row.month);

const partitionsFromNow = async (db: Db, ...offsets: number[]) =>
  (
    await db.query<{ month: string }>(
      `select 'entitlement_audit_' || to_char(now() at time zone 'UTC' + i * interval '1 month', 'YYYY_MM') as month
         from unnest($1::int[]) i order by 1`,
      [offsets],
    )
  ).rows.map((row) => row.month);

/** Also those of the template database, which may be of another month. */
const dropPartitions = async (db: Db) => {
  for (const month of await partitions(db)) await db.query(`drop table ${month}`);
};

const ignore = { onError: () => {}, onDropped: () => {} };

test("a new database has the partitions of three months and no default partition", async () => {
  await using t = await testDatabase();
  await migrate({ DATABASE_URL: t.url, TODOKE_API_KEYS: `shop=read=${"0".repeat(64)}` }, { dryRun: false });
  expect(await partitions(t.open({ schema: "entitlement" }))).toEqual(await partitionsFromNow(t.db, 0, 1, 2));
});

test("many processes create missing partitions before they serve requests", async () => {
  await using t = await setup();
  await dropPartitions(t.db);
  const { post } = await t.process();
  expect((await post("grants", "key-1")).statusCode).toBe(500); // no change without its audit row
  expect(await t.rows()).toEqual({ entitlements: 0, events: 0, audit: 0, keys: 0 });
  const workers = await Promise.all(
    [t.db, t.open(), t.open()].map((db) => startPartitionMaintenance(db, { keepMonths: 24, ...ignore })),
  );
  expect(await partitions(t.db)).toEqual(await partitionsFromNow(t.db, 0, 1, 2));
  expect((await post("grants", "key-1")).statusCode).toBe(201);
  for (const each of workers) await each[Symbol.asyncDispose]();
});

test("partitions begin at midnight UTC in any time zone of the session", async () => {
  await using t = await setup();
  await dropPartitions(t.db);
  const zone = (name: string) => t.open({ url: `${t.url}?options=${encodeURIComponent(`-c timezone=${name}`)}` });
  await using _ = await startPartitionMaintenance(zone("America/New_York"), { keepMonths: 24, ...ignore });
  const { rows } = await zone("UTC").query<{ bounds: string }>(
    `select pg_get_expr(relpartbound, oid) as bounds from pg_class where relname = any($1)`,
    [await partitionsFromNow(t.db, 0, 1, 2)],
  );
  const midnight = String.raw`'\d{4}-\d\d-01 00:00:00\+00'`;
  const wholeMonth = new RegExp(`^FOR VALUES FROM \\(${midnight}\\) TO \\(${midnight}\\)$`);
  expect(rows.map(({ bounds }) => bounds)).toEqual(Array(3).fill(expect.stringMatching(wholeMonth)));
});

test("partitions that are older than the limit are dropped and reported", async () => {
  await using t = await setup();
  await dropPartitions(t.db);
  for (const age of [3, 4, 5]) {
    await t.db.query(`do $$ declare month timestamp := date_trunc('month', now() at time zone 'UTC') - interval '${age} months'; begin
      execute format('create table entitlement_audit_%s partition of entitlement_audit for values from (%L) to (%L)',
        to_char(month, 'YYYY_MM'), month || '+00', month + interval '1 month' || '+00'); end $$`);
  }
  const dropped: string[] = [];
  await using _ = await startPartitionMaintenance(t.db, {
    keepMonths: 3,
    onError: () => {},
    onDropped: (partitions) => dropped.push(...partitions),
  });
  await until("old partitions are dropped", () => dropped.length > 0);
  expect(dropped).toEqual(await partitionsFromNow(t.db, -5, -4));
  expect(await partitions(t.db)).toEqual(await partitionsFromNow(t.db, -3, 0, 1, 2));
});

test("a long reader blocks neither commands nor a later drop", async () => {
  await using t = await setup();
  const { post } = await t.process();
  const reader = await t.db.connect();
  const errors: unknown[] = [];
  const dropped: string[] = [];
  await t.db.query(`create table entitlement_audit_2001_01 partition of entitlement_audit
                    for values from ('2001-01-01Z') to ('2001-02-01Z')`);
  await reader.query("begin; select count(*) from entitlement_audit");
  await using _ = await startPartitionMaintenance(t.open(), {
    keepMonths: 24,
    intervalMs: 10,
    onError: (error) => errors.push(error),
    onDropped: (partitions) => dropped.push(...partitions),
  });
  await until("a drop has failed", () => errors.length > 0);
  expect((await post("grants", "key-1")).statusCode).toBe(201);
  await reader.query("commit");
  reader.release();
  await until("a later run has dropped it", () => dropped.length > 0);
  expect(dropped).toEqual(["entitlement_audit_2001_01"]);
});
