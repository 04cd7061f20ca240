/** Databases of the points service, users with points, and HTTP requests for changes. */
import { randomUUID } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { migrate } from "@todoke/points";
import { auditLedger } from "@todoke/points/audit";
import { apiKey, openDatabase as openBenchDatabase } from "../databases.ts";

export const openDatabase = (postgresUrl: string) => openBenchDatabase(postgresUrl, migrate);

export const users = 100_000;

/** Creates users `u_1` to `u_100000` and `hot`, each with one grant of more points than are ever spent. */
export async function fillAccounts(db: Db): Promise<void> {
  await db.query(
    `with grants as materialized (
       select uuidv7() as id, user_id, 1000000000 as points, date_trunc('milliseconds', now()) as at
         from (select 'u_' || i as user_id from generate_series(1, ${users}) i union all select 'hot') u
     ),
     transactions as (
       insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                       version, effective_at, created_at)
       select id, 'bench ' || user_id, user_id, points, 'ADD', points, points, 0, 1, at, at from grants
     ),
     roots as (
       insert into point_root (user_id, balance, version, updated_at) select user_id, points, 1, at from grants
     )
     insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
     select id, user_id, points, points, 'infinity', 1, at from grants`,
  );
  for (const table of ["point_transactions", "point_root", "point_lots"]) await db.query(`vacuum analyze ${table}`);
}

/** A change with a new key. */
export function changeRequest(operation: "add" | "sub", userId: string): string {
  const body = `{"user_id":"${userId}","point_amount":1}`;
  return (
    `PUT /point/${operation} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${apiKey}\r\nIdempotency-Key: ${randomUUID()}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** Figures of a wrong ledger are worthless. */
export async function assertLedgerBalances(db: Db): Promise<void> {
  const findings = await auditLedger(db);
  if (findings.length > 0) throw new Error(`the ledger audit failed: ${JSON.stringify(findings.slice(0, 3))}`);
}
