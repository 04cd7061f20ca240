/** Lots that expire soon. */
import type { Db } from "@todoke/kernel/db";
import { timeSql } from "./time.ts";

export interface ExpiringLot {
  readonly lot_id: string;
  readonly remaining: bigint;
  readonly granted: bigint;
  readonly expires_at: string;
  /** For the cursor: it orders lots that expire at the same time. */
  readonly version: bigint;
}

export interface ExpiringPage {
  readonly userId: string;
  readonly withinSeconds: number;
  /** The last lot of the previous page. */
  readonly after?: Pick<ExpiringLot, "expires_at" | "version"> | undefined;
  readonly limit: number;
}

/** In spending order. */
export async function selectExpiringLots(db: Db, page: ExpiringPage): Promise<ExpiringLot[]> {
  const { userId, withinSeconds, after, limit } = page;
  const { rows } = await db.query<ExpiringLot>({
    name: "select expiring lots",
    text: `select lot_id, remaining, granted, ${timeSql("expires_at")} as expires_at, version
             from point_lots
            where user_id = $1 and is_open and expires_at > statement_timestamp()
              and expires_at <= statement_timestamp() + $2 * interval '1 second'
              and expires_at < 'infinity'
              and (expires_at, version) > (coalesce($3::timestamptz, '-infinity'), coalesce($4::bigint, 0))
            order by expires_at, version limit $5`,
    values: [userId, withinSeconds, after?.expires_at ?? null, after?.version ?? null, limit],
  });
  return rows;
}
