/** Grants booked ahead, as rows: what booking them over HTTP would have left, made by one statement. */
import type { Db } from "@todoke/kernel/db";

export interface Booking {
  readonly count: number;
  /** The first is due so many milliseconds from now, the next so many after it. */
  readonly inMs: number;
  readonly apartMs: number;
  /** In their keys and in the names of their users: nobody gets two. */
  readonly name: string;
}

export async function bookAhead(db: Db, { count, inMs, apartMs, name }: Booking): Promise<void> {
  await db.query(
    `insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash)
     select uuidv7(), $4 || '_' || md5(i::text), 1, now() + ($2 + i * $3) * interval '1 millisecond',
            'bench ' || $4 || i, sha256(i::text::bytea)
       from generate_series(0, $1::int - 1) i`,
    [count, inMs, apartMs, name],
  );
}
