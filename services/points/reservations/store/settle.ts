/** What the worker asks and writes. */
import { randomUUIDv7 } from "node:crypto";
import type { Tx } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import type { Time } from "../../ledger/account.ts";
import { timeText } from "../../store/time.ts";
import { reservationEventSql } from "./events.ts";
import type { ReservationStatus } from "./reservations.ts";

export interface DueReservation {
  readonly id: string;
  readonly userId: string;
  readonly amount: bigint;
  readonly executeAt: Time;
  readonly status: ReservationStatus;
  readonly expiresAt: string | null;
  readonly reason: string | null;
}

export const lockText = `
select r.id, r.user_id as "userId", r.point_amount as amount, ${timeText("r.execute_at")} as "executeAt", r.status,
       ${timeText("r.lot_expires_at")} as "expiresAt", r.reason
  from (select distinct id from unnest($1::uuid[]) as i(id) order by id) i
 cross join lateral (select * from point_reservations r where r.id = i.id limit 1 for update) r`;

/** Those that there are, locked in the order of their ids. */
export async function lockReservations(tx: Tx, ids: readonly string[]): Promise<Map<string, DueReservation>> {
  const { rows } = await tx.query<DueReservation>({ name: "lock reservations", text: lockText, values: [ids] });
  return new Map(rows.map((row) => [row.id, row]));
}

export interface Granted {
  readonly id: string;
  readonly transactionId: string;
}

/** The rows are found by their ids first: a join the planner could turn round, and read every reservation there is. */
export const grantedText = `
with granted as materialized (
  select r.row, g.transaction_id from unnest($1::uuid[], $2::uuid[]) as g(id, transaction_id)
   cross join lateral (select r.ctid as row from point_reservations r where r.id = g.id limit 1) r
)
update point_reservations r
   set status = 'DONE', transaction_id = g.transaction_id, last_error = null, updated_at = now()
  from granted g
 where r.ctid = g.row and r.status in ('PROCESSING', 'FAILED')
returning (extract(epoch from clock_timestamp() - greatest(r.execute_at, r.created_at)) * 1000)::float8 as delay_ms`;

/**
 * They are DONE; also what had been given up before. Says how long each had been due, in milliseconds: since its time, or
 * since it was booked where that came later.
 */
export async function settleGranted(tx: Tx, granted: readonly Granted[]): Promise<readonly number[]> {
  const { rows } = await tx.query<{ delay_ms: number }>({
    name: "settle granted",
    text: grantedText,
    values: [granted.map((each) => each.id), granted.map((each) => each.transactionId)],
  });
  return rows.map((row) => row.delay_ms);
}

// As much as the inbox keeps of an error.
const errorMax = 2_000;

export const failedText = `
with failed as (
  update point_reservations set status = 'FAILED', last_error = $2, updated_at = now()
   where id = $1 and status = 'PROCESSING'
  returning id, user_id, point_amount, execute_at, updated_at
)
${insertEventsSql({
  ...reservationEventSql,
  from: "failed",
  subject: "points.events",
  eventId: "$3::uuid",
  eventType: "'PointReservationFailed'",
  version: "2",
  occurredAt: "updated_at",
  fields: { ...reservationEventSql.fields, reason: "$2::text" },
})}`;

/** FAILED, and its event, unless it has ended already. */
export async function settleFailed(tx: Tx, id: string, why: string): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "settle failed",
    text: failedText,
    values: [id, why.replaceAll("\0", "\uFFFD").slice(0, errorMax), randomUUIDv7()],
  });
  return rowCount === 1;
}
