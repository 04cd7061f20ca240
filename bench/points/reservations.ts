/** Inserts reservations in one statement, with the rows that reserving over HTTP would leave. */
import type { Db } from "@todoke/kernel/db";

export interface ReservationBatch {
  readonly count: number;
  /** The first is due after `firstDueMs`, each further one `spacingMs` later. */
  readonly firstDueMs: number;
  readonly spacingMs: number;
  /** Part of keys and user ids: each reservation has its own user. */
  readonly name: string;
}

export async function insertReservations(
  db: Db,
  { count, firstDueMs, spacingMs, name }: ReservationBatch,
): Promise<void> {
  await db.query(
    `insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash)
     select uuidv7(), $4 || '_' || md5(i::text), 1, now() + ($2 + i * $3) * interval '1 millisecond',
            'bench ' || $4 || i, sha256(i::text::bytea)
       from generate_series(0, $1::int - 1) i`,
    [count, firstDueMs, spacingMs, name],
  );
}
