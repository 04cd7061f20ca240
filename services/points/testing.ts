/** What the tests of this service share: the ledger on a database of its own, and ways to change points. */
import { randomUUID } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { type Answer, digestOf } from "@todoke/kernel/idempotency";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { patient, testDatabase, until } from "@todoke/kernel/testing";
import { expect } from "vitest";
import { changePoints, type PointsChange } from "./commands/change-points.ts";
import { auditLedger } from "./store/audit.ts";

const own = { name: "points", dir: new URL("./migrations/", import.meta.url) };

export async function setup() {
  const t = await testDatabase({ schema: "points", sets: [kernelMigrations, own], pools: patient });
  /** Another process: it shares nothing with the others but the database. */
  const process = (db: Db = t.open()) => commandsOn(db);
  const rows = async (query: string, values: unknown[] = []) => (await t.db.query(query, values)).rows;
  return {
    ...t,
    ...commandsOn(t.db),
    process,
    rows,
    audit: () => auditLedger(t.db),
    /** Lets time pass for all that ends, by moving its ends into the past. */
    async age(by: string) {
      await t.db.query(`update point_lots set expires_at = expires_at - $1::interval`, [by]);
      await t.db.query(`update point_holds set ends_at = ends_at - $1::interval`, [by]);
    },
  };
}

function commandsOn(db: Db) {
  const change = changePoints(db, () => {});
  const asked = async (wanted: PointsChange, key: string = randomUUID()): Promise<Told> =>
    told(await change({ scope: "shop PUT /points", key, requestHash: digestOf(textual(wanted)) }, wanted));
  return {
    change: asked,
    add: (userId: string, amount: bigint, more: { expiresAt?: string; key?: string } = {}) =>
      asked({ kind: "ADD", userId, amount, expiresAt: more.expiresAt ?? null }, more.key),
    sub: (userId: string, amount: bigint, key?: string) => asked({ kind: "SUB", userId, amount }, key),
    hold: (userId: string, amount: bigint, ttlSeconds = 900) => asked({ kind: "HOLD", userId, amount, ttlSeconds }),
    capture: (holdId: string, amount?: bigint) => asked({ kind: "CAPTURE", holdId, amount }),
    release: (holdId: string) => asked({ kind: "RELEASE", holdId }),
    refund: (transactionId: string, amount?: bigint) => asked({ kind: "REFUND", transactionId, amount }),
  };
}

/** An answer, and what is in it. */
interface Told extends Answer {
  readonly json: Record<string, string>;
}

/** Numbers of the answer as their digits, which JSON.parse would round. */
const told = (answer: Answer): Told => ({
  ...answer,
  json: JSON.parse(answer.body.toString().replace(/":(-?\d+)/g, '":"$1"')),
});

const textual = (value: object): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? each.toString() : each)));

/** An id says its millisecond and nothing finer: of two that are to be told apart by their age, each has its own. */
export async function nextMillisecond(): Promise<void> {
  const at = Date.now();
  await until("its millisecond is over", () => Date.now() > at);
}

/** RFC 3339, so many seconds from now. */
export const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1_000).toISOString();

/** From now on the statistics are what the test makes of them: no autovacuum looks at the tables in the middle of it. */
export async function keepStatistics(db: Db): Promise<void> {
  const { rows } = await db.query(`select tablename from pg_tables where schemaname = current_schema()`);
  for (const { tablename } of rows) await db.query(`alter table ${tablename} set (autovacuum_enabled = off)`);
}

/**
 * A statement finds its rows by these indexes and by nothing else, in the plan that is cached for whatever its parameters
 * turn out to be. An index that is read from end to end is told as "all of <name>".
 */
export async function expectProbes(db: Db, sql: string, indexes: readonly string[]): Promise<void> {
  const { rows } = await db.query(`explain (generic_plan) ${sql}`);
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan, `${sql}\n${plan}`).not.toMatch(/Seq Scan on (point|idempotency)|Bitmap/);
  const scans = plan.matchAll(/Index (?:Only )?Scan (?:Backward )?using (\w+).*(\n *Index Cond)?/g);
  const used = [...scans].map(([, name, condition]) => (condition ? name : `all of ${name}`));
  expect([...new Set(used)].sort(), `${sql}\n${plan}`).toEqual([...indexes].sort());
}
