import type { LimitItem } from "@todoke/http";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { postgresLimiter } from "./postgres.ts";

const setup = () => {
  const own = { name: "gateway-bff", dir: new URL("../migrations/", import.meta.url) };
  return testDatabase({ schema: "gateway_bff", sets: [own] });
};

const policy = { name: "read", quota: 1_000_000, windowMs: 3_600_000 };

test("processes that take from the same keys never deadlock", async () => {
  await using t = await setup();
  const pools = Array.from({ length: 4 }, () => t.open());
  const keys = Array.from({ length: 30 }, (_, n) => `key ${n}`);
  // Past the limiter, which would try a deadlock again: here it is an error.
  const take = (pool: (typeof pools)[number], round: number) => {
    const shuffled = keys.map((key) => `${round} ${key}`).sort(() => Math.random() - 0.5);
    const each = <T>(value: T) => shuffled.map(() => value);
    const places = shuffled.map((_, n) => n + 1);
    const values = [shuffled, places, places, each(1), each(1), each(1_000_000)];
    return pool.query("select take_units($1, $2, $3, $4, $5, $6)", values);
  };
  for (let round = 0; round < 20; round++) {
    await Promise.all(pools.flatMap((pool) => [1, 2, 3, 4].map(() => take(pool, round))));
  }
  const { rows } = await t.db.query("select count(*)::int from rate_limits");
  expect(rows[0].count).toBe(20 * keys.length);
});

test("keys are found by index and updated in place, also on stale statistics", async () => {
  await using t = await setup();
  const db = t.open({ poolMax: 1 });
  const limiter = postgresLimiter(db);
  const of = (key: string): LimitItem => ({ key, units: 1, policy });
  await limiter.take([of("first")]);
  await t.db.query("insert into rate_limits select 'other ' || n, now() from generate_series(1, 20000) n");
  for (let n = 0; n < 20; n++) await Promise.all(["first", "second", "other 7"].map((key) => limiter.take([of(key)])));
  await db.query("select pg_stat_force_next_flush()");
  const { rows } = await db.query(
    `select seq_scan::int as scans, n_tup_upd::int as updates, n_tup_hot_upd::int as on_page
       from pg_stat_user_tables where relname = 'rate_limits'`,
  );
  expect(rows).toEqual([{ scans: 0, updates: 61, on_page: 61 }]);
});
