/** The one statement that books grants ahead, and the one that takes a booking back. */
import { type Db, statement, type Tx, utcText } from "@todoke/kernel/db";
import type { ReservationStatus } from "./reservations.ts";

export interface ReservationRow {
  readonly id: string;
  readonly user_id: string;
  /** A decimal: JSON has no number for all of them. */
  readonly point_amount: string;
  readonly execute_at: string;
  readonly idempotency_key: string;
  /** Hex. */
  readonly request_hash: string;
  readonly lot_expires_at: string | null;
  readonly reason: string | null;
}

export interface Reserved {
  readonly result: "first" | "replayed" | "conflict";
  /** The same bytes whenever it is asked again: made from what never changes of the row. */
  readonly body: Buffer;
  /** How far off its time is, by the database's clock. */
  readonly due_in_ms: number;
}

/** As the reservation was when it was booked, whatever became of it since. */
const told = (r: string) => `convert_to(json_strip_nulls(json_build_object(
    'id', ${r}.id, 'user_id', ${r}.user_id, 'point_amount', ${r}.point_amount,
    'execute_at', ${utcText(`${r}.execute_at`)}, 'status', 'PENDING', 'reason', ${r}.reason,
    'expires_at', ${utcText(`${r}.lot_expires_at`)}, 'created_at', ${utcText(`${r}.created_at`)}))::text, 'utf8')`;

/**
 * A key that another process is writing at this moment is met by the unique index: the whole statement fails with 23505,
 * and run again it finds the row. The look-up of keys stays an index probe whatever the planner believes of the table.
 */
export const reserveText = `
with input as materialized (
  select * from rows from (jsonb_to_recordset($1::jsonb) as (
           id uuid, user_id text, point_amount bigint, execute_at timestamptz, idempotency_key text, request_hash text,
           lot_expires_at timestamptz, reason text))
         with ordinality as i(id, user_id, point_amount, execute_at, idempotency_key, request_hash, lot_expires_at, reason,
                              place)
),
known as materialized (
  select i.place, k.same_request, k.body
    from input i cross join lateral (
           select r.request_hash = decode(i.request_hash, 'hex') as same_request, ${told("r")} as body
             from point_reservations r where r.idempotency_key = i.idempotency_key limit 1) k
),
made as (
  insert into point_reservations
    (id, user_id, point_amount, execute_at, idempotency_key, request_hash, lot_expires_at, reason)
  select id, user_id, point_amount, execute_at, idempotency_key, decode(request_hash, 'hex'), lot_expires_at, reason
    from input where place not in (select place from known)
   order by idempotency_key
  returning idempotency_key, ${told("point_reservations")} as body
)
select i.place, 'first' as result, m.body,
       (extract(epoch from i.execute_at - clock_timestamp()) * 1000)::float8 as due_in_ms
  from made m join input i on i.idempotency_key = m.idempotency_key
union all
select place, case when same_request then 'replayed' else 'conflict' end, body, 0 from known
order by place`;

/** Answers each in its place. No two may share a key. */
export async function insertReservations(db: Db, rows: readonly ReservationRow[]): Promise<readonly Reserved[]> {
  const { rows: answers } = await statement<Reserved>(db, {
    name: "reserve points",
    text: reserveText,
    values: [JSON.stringify(rows)],
  });
  return answers;
}

export const lockText = `select status from point_reservations where id = $1 for update`;

export const cancelText = `
update point_reservations set status = 'CANCELLED', updated_at = now() where id = $1 and status = 'PENDING'`;

/** Undefined when it was PENDING, and is CANCELLED now; else what it is. None: there is no such reservation. */
export async function cancelReservation(tx: Tx, id: string): Promise<ReservationStatus | "none" | undefined> {
  // Waits for a scheduler that has just taken it up, and then sees what it has become.
  const { rows } = await tx.query<{ status: ReservationStatus }>({
    name: "lock reservation",
    text: lockText,
    values: [id],
  });
  const status = rows[0]?.status ?? "none";
  if (status !== "PENDING") return status;
  await tx.query({ name: "cancel reservation", text: cancelText, values: [id] });
  return undefined;
}
