/** Reads of reservations. */
import { omitNulls, type Queryable, rfc3339Sql } from "@todoke/kernel/db";

export type ReservationStatus = "PENDING" | "PROCESSING" | "DONE" | "FAILED" | "CANCELLED";

/** Null columns are left out. */
export interface ReservationView {
  readonly id: string;
  readonly user_id: string;
  readonly point_amount: bigint;
  readonly execute_at: string;
  readonly status: ReservationStatus;
  readonly reason?: string;
  readonly expires_at?: string;
  readonly last_error?: string;
  readonly transaction_id?: string;
  readonly schedule_id?: string;
  readonly occurrence_at?: string;
  readonly attempt_count: number;
  readonly created_at: string;
  readonly updated_at: string;
}

const columns = `id, user_id, point_amount, ${rfc3339Sql("execute_at")} as execute_at, status, reason,
  ${rfc3339Sql("lot_expires_at")} as expires_at, last_error, transaction_id, schedule_id,
  ${rfc3339Sql("occurrence_at")} as occurrence_at, attempt_count,
  ${rfc3339Sql("created_at")} as created_at, ${rfc3339Sql("updated_at")} as updated_at`;

export async function selectReservation(db: Queryable, id: string): Promise<ReservationView | undefined> {
  const { rows } = await db.query<ReservationView>({
    name: "select reservation",
    text: `select ${columns} from point_reservations where id = $1`,
    values: [id],
  });
  return rows[0] && omitNulls(rows[0]);
}

export interface ReservationsPage {
  readonly userId: string;
  readonly statuses?: readonly ReservationStatus[] | undefined;
  /** The last id of the previous page. */
  readonly before?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export async function selectReservations(db: Queryable, page: ReservationsPage): Promise<ReservationView[]> {
  const { rows } = await db.query<ReservationView>({
    name: "select reservations",
    text: `select ${columns} from point_reservations
            where user_id = $1 and id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
              and ($3::text[] is null or status = any($3))
            order by id desc limit $4`,
    values: [page.userId, page.before ?? null, page.statuses ?? null, page.limit],
  });
  return rows.map((row) => omitNulls(row));
}

/** Due and not granted, the longest due first. Each half is read by the index of the step that it waits for. */
export async function selectDueReservations(db: Queryable, limit: number): Promise<ReservationView[]> {
  const { rows } = await db.query<ReservationView>({
    name: "select due reservations",
    text: `select ${columns} from (
             (select * from point_reservations
               where status = 'PENDING' and execute_at <= now() and execute_at < 'infinity' order by execute_at, id limit $1)
             union all
             (select * from point_reservations
               where status = 'PROCESSING' and sent_at < 'infinity' order by sent_at, id limit $1)) r
            order by r.execute_at, r.id limit $1`,
    values: [limit],
  });
  return rows.map((row) => omitNulls(row));
}

/** Due next, the soonest first. */
export async function selectUpcomingReservations(db: Queryable, limit: number): Promise<ReservationView[]> {
  const { rows } = await db.query<ReservationView>({
    name: "select upcoming reservations",
    text: `select ${columns} from point_reservations r
            where status = 'PENDING' and execute_at > now() and execute_at < 'infinity'
            order by r.execute_at, r.id limit $1`,
    values: [limit],
  });
  return rows.map((row) => omitNulls(row));
}

/** The sum of a user's reservations that are not granted yet. It can exceed 2^63 - 1. */
export async function selectReservedPoints(db: Queryable, userId: string): Promise<bigint> {
  const { rows } = await db.query<{ points: string }>({
    name: "select reserved points",
    text: `select coalesce(sum(point_amount), 0)::text as points from point_reservations
            where user_id = $1 and status in ('PENDING', 'PROCESSING')`,
    values: [userId],
  });
  return BigInt(rows[0]?.points ?? 0);
}
