/** Statements that grant reservations. */
import { randomUUIDv7 } from "node:crypto";
import type { Tx } from "@todoke/kernel/db";
import { insertReservationFailedSql } from "../events/reservation-events.ts";
import type { Time } from "../ledger/account.ts";
import type { ReservationStatus } from "./reservations.ts";
import { timeSql } from "./time.ts";

export interface DueReservation {
  readonly id: string;
  readonly userId: string;
  readonly amount: bigint;
  readonly executeAt: Time;
  readonly status: ReservationStatus;
  readonly expiresAt: string | null;
  readonly reason: string | null;
}

const columns = `r.id, r.user_id as "userId", r.point_amount as amount, ${timeSql("r.execute_at")} as "executeAt", r.status,
       ${timeSql("r.lot_expires_at")} as "expiresAt", r.reason`;

export const lockReservationsSql = `
select ${columns}
  from (select distinct id from unnest($1::uuid[]) as i(id) order by id) i
 cross join lateral (select * from point_reservations r where r.id = i.id limit 1 for update) r`;

/** Locks in the order of ids, so that batches cannot deadlock. Unknown ids are missing in the result. */
export async function lockReservations(tx: Tx, ids: readonly string[]): Promise<Map<string, DueReservation>> {
  const { rows } = await tx.query<DueReservation>({
    name: "lock reservations",
    text: lockReservationsSql,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

/** `< 'infinity'` is the condition of the partial index (migrations/0002), so that the planner uses it. */
export const lockDueReservationsSql = `
select ${columns} from point_reservations r
 where r.status = 'PENDING' and r.execute_at <= now() and r.execute_at < 'infinity'
 order by r.execute_at, r.id limit $1 for update skip locked`;

/** Locks reservations that are due, oldest first, and skips those that another transaction has locked. */
export async function lockDueReservations(tx: Tx, limit: number): Promise<readonly DueReservation[]> {
  const { rows } = await tx.query<DueReservation>({
    name: "lock due reservations",
    text: lockDueReservationsSql,
    values: [limit],
  });
  return rows;
}

export interface Granted {
  readonly id: string;
  readonly transactionId: string;
}

/** The rows are looked up by id first: a plain join could be planned as a scan of all reservations. */
export const markGrantedSql = `
with granted as materialized (
  select r.row, g.transaction_id from unnest($1::uuid[], $2::uuid[]) as g(id, transaction_id)
   cross join lateral (select r.ctid as row from point_reservations r where r.id = g.id limit 1) r
)
update point_reservations r
   set status = 'DONE', transaction_id = g.transaction_id, last_error = null, updated_at = now(),
       sent_at = coalesce(r.sent_at, now()), attempt_count = greatest(r.attempt_count, 1)
  from granted g
 where r.ctid = g.row and r.status in ('PENDING', 'PROCESSING', 'FAILED')
returning (extract(epoch from clock_timestamp() - greatest(r.execute_at, r.created_at)) * 1000)::float8 as delay_ms`;

/** Makes locked reservations DONE, also FAILED ones. Returns each delay since the reservation was due or, if later, created. */
export async function markGranted(tx: Tx, granted: readonly Granted[]): Promise<readonly number[]> {
  const { rows } = await tx.query<{ delay_ms: number }>({
    name: "mark granted",
    text: markGrantedSql,
    values: [granted.map((each) => each.id), granted.map((each) => each.transactionId)],
  });
  return rows.map((row) => row.delay_ms);
}

// The length that the inbox also stores of an error.
const errorMax = 2_000;

export const markFailedSql = `
with failed as (
  update point_reservations set status = 'FAILED', last_error = $2, updated_at = now()
   where id = $1 and status = 'PROCESSING'
  returning id, user_id, point_amount, execute_at, updated_at
)
${insertReservationFailedSql("failed", { eventId: "$3::uuid", reason: "$2::text" })}`;

/** Makes the reservation FAILED and emits PointReservationFailed. Returns false if it is not PROCESSING. */
export async function markFailed(tx: Tx, id: string, reason: string): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "mark failed",
    text: markFailedSql,
    values: [id, reason.replaceAll("\0", "\uFFFD").slice(0, errorMax), randomUUIDv7()],
  });
  return rowCount === 1;
}
