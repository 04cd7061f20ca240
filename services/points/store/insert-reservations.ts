/** The statement that accepts reservations, and the one that cancels a reservation. */
import { type Db, recordsSql, rfc3339Sql, runStatement, type Tx } from "@todoke/kernel/db";
import type { ReservationStatus } from "./reservations.ts";

export interface ReservationRow {
  readonly id: string;
  readonly user_id: string;
  /** Decimal digits: a JSON number would round. */
  readonly point_amount: string;
  readonly execute_at: string;
  readonly idempotency_key: string;
  /** Hex. */
  readonly request_hash: string;
  readonly lot_expires_at: string | null;
  readonly reason: string | null;
}

export interface InsertResult {
  readonly result: "first" | "replayed" | "conflict";
  /** Built from columns that never change, so a replay has the same bytes. */
  readonly body: Buffer;
  /** Time until it is due, by the database's clock. */
  readonly due_in_ms: number;
}

/** The response body: the reservation as it was when it was accepted. */
const responseSql = (r: string) => `convert_to(json_strip_nulls(json_build_object(
    'id', ${r}.id, 'user_id', ${r}.user_id, 'point_amount', ${r}.point_amount,
    'execute_at', ${rfc3339Sql(`${r}.execute_at`)}, 'status', 'PENDING', 'reason', ${r}.reason,
    'expires_at', ${rfc3339Sql(`${r}.lot_expires_at`)}, 'created_at', ${rfc3339Sql(`${r}.created_at`)}))::text, 'utf8')`;

const columns = `id uuid, user_id text, point_amount bigint, execute_at timestamptz, idempotency_key text, request_hash text,
  lot_expires_at timestamptz, reason text`;

/**
 * A key that another process is inserting violates the unique index: the statement fails with 23505, and the retry finds
 * the row. The key lookup is LATERAL … LIMIT 1, so that it stays an index probe with any statistics.
 */
export const insertReservationsSql = `
with input as materialized (select * from ${recordsSql("$1", columns)}),
existing_keys as materialized (
  select i.ordinal, k.same_request, k.body
    from input i cross join lateral (
           select r.request_hash = decode(i.request_hash, 'hex') as same_request, ${responseSql("r")} as body
             from point_reservations r where r.idempotency_key = i.idempotency_key limit 1) k
),
inserted as (
  insert into point_reservations
    (id, user_id, point_amount, execute_at, idempotency_key, request_hash, lot_expires_at, reason)
  select id, user_id, point_amount, execute_at, idempotency_key, decode(request_hash, 'hex'), lot_expires_at, reason
    from input where ordinal not in (select ordinal from existing_keys)
   order by idempotency_key
  returning idempotency_key, ${responseSql("point_reservations")} as body
)
select i.ordinal, 'first' as result, n.body,
       (extract(epoch from i.execute_at - clock_timestamp()) * 1000)::float8 as due_in_ms
  from inserted n join input i on i.idempotency_key = n.idempotency_key
union all
select ordinal, case when same_request then 'replayed' else 'conflict' end, body, 0 from existing_keys
order by ordinal`;

/** Returns one result per row, in input order. No two rows may have the same key. */
export async function insertReservations(db: Db, rows: readonly ReservationRow[]): Promise<readonly InsertResult[]> {
  const { rows: results } = await runStatement<InsertResult>(db, {
    name: "insert reservations",
    text: insertReservationsSql,
    values: [JSON.stringify(rows)],
  });
  return results;
}

export const lockReservationSql = `select status from point_reservations where id = $1 for update`;

export const cancelPendingSql = `
update point_reservations set status = 'CANCELLED', updated_at = now() where id = $1 and status = 'PENDING'`;

/** Cancels the reservation if it is PENDING. Returns the status that it had; undefined if it does not exist. */
export async function cancelPending(tx: Tx, id: string): Promise<ReservationStatus | undefined> {
  // Waits for a scheduler that is dispatching the reservation, and then sees its new status.
  const { rows } = await tx.query<{ status: ReservationStatus }>({
    name: "lock reservation",
    text: lockReservationSql,
    values: [id],
  });
  const status = rows[0]?.status;
  if (status === "PENDING") await tx.query({ name: "cancel reservation", text: cancelPendingSql, values: [id] });
  return status;
}
