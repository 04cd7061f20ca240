import type { Db } from "@todoke/kernel/db";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { migrate } from "../main.ts";
import { setup } from "../testing.ts";
import { startPartitionMaintenance } from "./partition-maintenance.ts";

const months = async (db: Db) =>
  (
    await db.query<{ month: string }>(
      `select relname::text as month from pg_inherits join pg_class on oid = inhrelid
        where inhparent = 'entitlement_audit'::regclass order by 1`,
    )
  ).rows.map((row) => row.month);

const monthsFromNow = async (db: Db, ...places: number[]) =>
  (
    await db.query<{ month: string }>(
      `select 'entitlement_audit_' || to_char(now() at time zone 'UTC' + i * interval '1 month', 'YYYY_MM') as month
         from unnest($1::int[]) i order by 1`,
      [places],
    )
  ).rows.map((row) => row.month);

/** Those of the template too, which may have been made in another month. */
const dropMonths = async (db: Db) => {
  for (const month of await months(db)) await db.query(`drop table ${month}`);
};

const deaf = { onError: () => {}, onDropped: () => {} };

test("a new database has this month and the next two, and no partition that takes what fits nowhere", async () => {
  await using t = await testDatabase();
  await migrate({ DATABASE_URL: t.url, TODOKE_API_KEYS: `shop=read=${"0".repeat(64)}` }, { dryRun: false });
  expect(await months(t.open({ schema: "entitlement" }))).toEqual(await monthsFromNow(t.db, 0, 1, 2));
});

test("a service that comes back after years makes its months before it serves, with many processes at once", async () => {
  await using t = await setup();
  await dropMonths(t.db);
  const { post } = await t.process();
  expect((await post("grants", "key-1")).statusCode).toBe(500); // and not a change that the audit does not know
  expect(await t.rows()).toEqual({ entitlements: 0, events: 0, audit: 0, keys: 0 });
  const kept = await Promise.all(
    [t.db, t.open(), t.open()].map((db) => startPartitionMaintenance(db, { keepMonths: 24, ...deaf })),
  );
  expect(await months(t.db)).toEqual(await monthsFromNow(t.db, 0, 1, 2));
  expect((await post("grants", "key-1")).statusCode).toBe(201);
  for (const each of kept) await each[Symbol.asyncDispose]();
});

test("months are UTC's, whatever the time zone of the session that makes them", async () => {
  await using t = await setup();
  await dropMonths(t.db);
  const zone = (name: string) => t.open({ url: `${t.url}?options=${encodeURIComponent(`-c timezone=${name}`)}` });
  await using _ = await startPartitionMaintenance(zone("America/New_York"), { keepMonths: 24, ...deaf });
  const { rows } = await zone("UTC").query<{ bounds: string }>(
    `select pg_get_expr(relpartbound, oid) as bounds from pg_class where relname = any($1)`,
    [await monthsFromNow(t.db, 0, 1, 2)],
  );
  const midnight = String.raw`'\d{4}-\d\d-01 00:00:00\+00'`;
  const wholeMonth = new RegExp(`^FOR VALUES FROM \\(${midnight}\\) TO \\(${midnight}\\)$`);
  expect(rows.map(({ bounds }) => bounds)).toEqual(Array(3).fill(expect.stringMatching(wholeMonth)));
});

test("months go when all of them is older than the age, and are told", async () => {
  await using t = await setup();
  await dropMonths(t.db);
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
  await until("old months are dropped", () => dropped.length > 0);
  expect(dropped).toEqual(await monthsFromNow(t.db, -5, -4));
  expect(await months(t.db)).toEqual(await monthsFromNow(t.db, -3, 0, 1, 2));
});

test("a reader that does not end holds up neither commands nor the next try", async () => {
  await using t = await setup();
  const { post } = await t.process();
  const reader = await t.db.connect();
  const faults: unknown[] = [];
  const dropped: string[] = [];
  await t.db.query(`create table entitlement_audit_2001_01 partition of entitlement_audit
                    for values from ('2001-01-01Z') to ('2001-02-01Z')`);
  await reader.query("begin; select count(*) from entitlement_audit");
  await using _ = await startPartitionMaintenance(t.open(), {
    keepMonths: 24,
    intervalMs: 10,
    onError: (error) => faults.push(error),
    onDropped: (partitions) => dropped.push(...partitions),
  });
  await until("a try has failed", () => faults.length > 0);
  expect((await post("grants", "key-1")).statusCode).toBe(201);
  await reader.query("commit");
  reader.release();
  await until("a later try has dropped it", () => dropped.length > 0);
  expect(dropped).toEqual(["entitlement_audit_2001_01"]);
});
