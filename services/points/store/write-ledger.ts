/** The statement that writes the ledger: rows, events and responses together. */
import type { Tx } from "@todoke/kernel/db";
import { insertResponseRowsSql, type KeyedResponse, responseRows } from "@todoke/kernel/idempotency";
import { eventRows, insertEventRowsSql, type NewEvent } from "@todoke/kernel/outbox";
import type { LedgerRows } from "../ledger/changes.ts";

export interface LedgerWrite {
  readonly rows: LedgerRows;
  readonly events: readonly NewEvent[];
  readonly responses: readonly KeyedResponse[];
}

/**
 * Existing rows are updated by ON CONFLICT on their key, never by a join that the planner could reorder.
 *
 * Transactions and responses are inserted in the order of keys, so that two batches with the same keys cannot deadlock.
 * Events are inserted in the order of transactions, which for one user is the order of versions. A key that another process
 * has just inserted fails the statement with 23505; the retry finds it.
 */
export const writeLedgerSql = `
with write_transactions as (
  insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                  version, reason, source, source_id, refers_to, effective_at, created_at)
  select id, "idempotencyKey", "userId", "pointAmount", kind, moved, "balanceAfter", "heldAfter",
         version, reason, source, "sourceId", "refersTo", "effectiveAt", "createdAt"
    from jsonb_to_recordset($1::jsonb) as (
           id uuid, "idempotencyKey" text, "userId" text, "pointAmount" bigint, kind text, moved bigint,
           "balanceAfter" bigint, "heldAfter" bigint, version bigint, reason text, source text, "sourceId" text,
           "refersTo" uuid, "effectiveAt" timestamptz, "createdAt" timestamptz)
   order by "idempotencyKey"
),
write_roots as (
  insert into point_root (user_id, balance, held, version, updated_at)
  select "userId", balance, held, version, "updatedAt"
    from jsonb_to_recordset($2::jsonb) as ("userId" text, balance bigint, held bigint, version bigint, "updatedAt" timestamptz)
  on conflict (user_id) do update
     set balance = excluded.balance, held = excluded.held, version = excluded.version, updated_at = excluded.updated_at
),
write_lots as (
  insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
  select "lotId", "userId", granted, remaining, coalesce("expiresAt", 'infinity'), version, "createdAt"
    from jsonb_to_recordset($3::jsonb) as ("lotId" uuid, "userId" text, granted bigint, remaining bigint,
                                           "expiresAt" timestamptz, version bigint, "createdAt" timestamptz)
  on conflict (lot_id) do update set remaining = excluded.remaining
),
write_uses as (
  insert into point_lot_uses (transaction_id, lot_id, amount, returned)
  select "transactionId", "lotId", amount, returned
    from jsonb_to_recordset($4::jsonb) as ("transactionId" uuid, "lotId" uuid, amount bigint, returned bigint)
  on conflict (transaction_id, lot_id) do update set returned = excluded.returned
),
write_holds as (
  insert into point_holds (hold_id, user_id, amount, captured, released, status, ends_at, created_at, updated_at)
  select "holdId", "userId", amount, captured, released, status, "endsAt", "createdAt", "updatedAt"
    from jsonb_to_recordset($5::jsonb) as ("holdId" uuid, "userId" text, amount bigint, captured bigint, released bigint,
                                           status text, "endsAt" timestamptz, "createdAt" timestamptz, "updatedAt" timestamptz)
  on conflict (hold_id) do update
     set captured = excluded.captured, released = excluded.released, status = excluded.status, updated_at = excluded.updated_at
),
insert_events as (${insertEventRowsSql("$6")})
${insertResponseRowsSql("$7")}`;

/** The caller holds the locks on the users. */
export async function writeLedger(tx: Tx, { rows, events, responses }: LedgerWrite): Promise<void> {
  if (rows.transactions.length === 0) return;
  await tx.query({
    name: "write point ledger",
    text: writeLedgerSql,
    values: [
      json(rows.transactions),
      json(rows.roots),
      json(rows.lots),
      json(rows.uses),
      json(rows.holds),
      eventRows(events),
      responseRows(responses),
    ],
  });
}

/** Bigints as text, which PostgreSQL reads without rounding. */
const json = (rows: readonly object[]): string =>
  JSON.stringify(rows, (_, value) => (typeof value === "bigint" ? value.toString() : value));
