/** Databases with the tables of points, users who have some, and what is asked about them over HTTP. */
import { randomUUID } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { migrate } from "@todoke/points";
import { auditLedger } from "@todoke/points/audit";
import { apiKey, type BenchDatabase, openDatabase as openBenchDatabase } from "../databases.ts";

export async function openDatabase(postgresUrl: string): Promise<BenchDatabase> {
  const database = await openBenchDatabase(postgresUrl);
  await migrate({ DATABASE_URL: database.url }, { dryRun: false });
  return database;
}

export const users = 100_000;

/** `u_1` to `u_100000`, and `hot`: each has been given points once, more than will be spent. */
export async function fillAccounts(db: Db): Promise<void> {
  await db.query(
    `with given as materialized (
       select uuidv7() as id, user_id, 1000000000 as points, date_trunc('milliseconds', now()) as at
         from (select 'u_' || i as user_id from generate_series(1, ${users}) i union all select 'hot') u
     ),
     transactions as (
       insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                       version, effective_at, created_at)
       select id, 'bench ' || user_id, user_id, points, 'ADD', points, points, 0, 1, at, at from given
     ),
     roots as (
       insert into point_root (user_id, balance, version, updated_at) select user_id, points, 1, at from given
     )
     insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
     select id, user_id, points, points, 'infinity', 1, at from given`,
  );
  for (const table of ["point_transactions", "point_root", "point_lots"]) await db.query(`vacuum analyze ${table}`);
}

/** A change that nobody asked for before. */
export function change(what: "add" | "sub", userId: string): string {
  const body = `{"user_id":"${userId}","point_amount":1}`;
  return (
    `PUT /point/${what} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${apiKey}\r\nIdempotency-Key: ${randomUUID()}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** Figures of a ledger that does not add up would be worth nothing. */
export async function assertAddsUp(db: Db): Promise<void> {
  const findings = await auditLedger(db);
  if (findings.length > 0) throw new Error(`the ledger does not add up: ${JSON.stringify(findings.slice(0, 3))}`);
}
