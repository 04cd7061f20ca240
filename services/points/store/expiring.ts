/** What will run out soon, so that people can be told while they can still spend it. */
import type { Db } from "@todoke/kernel/db";
import { timeText } from "./time.ts";

export interface ExpiringLot {
  readonly lot_id: string;
  readonly remaining: bigint;
  readonly granted: bigint;
  readonly expires_at: string;
  /** For the cursor: lots that end at one moment are told apart by it. */
  readonly version: bigint;
}

export interface ExpiringPage {
  readonly userId: string;
  /** What runs out from now up to so many seconds later, by the database's clock. */
  readonly withinSeconds: number;
  /** The last lot of the page before. */
  readonly after?: Pick<ExpiringLot, "expires_at" | "version"> | undefined;
  readonly limit: number;
}

/** The order is that of spending. */
export async function selectExpiring(db: Db, page: ExpiringPage): Promise<ExpiringLot[]> {
  const { userId, withinSeconds, after, limit } = page;
  const { rows } = await db.query<ExpiringLot>({
    name: "select expiring lots",
    text: `select lot_id, remaining, granted, ${timeText("expires_at")} as expires_at, version
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
