/** What is left to do, counted by the partial indexes that the work itself uses: finished rows cost nothing. */
import type { Db } from "@todoke/kernel/db";

export interface NotificationBacklog {
  readonly pending: number;
  readonly processing: number;
  /** FAILED, and not redriven. */
  readonly dead: number;
  /** How long the longest-waiting notification that a sender could take now has been due; 0 when there is none. */
  readonly oldestDueMs: number;
}

export async function selectBacklog(db: Db): Promise<NotificationBacklog> {
  const { rows } = await db.query<NotificationBacklog>({
    name: "select notification backlog",
    text: `select (select count(*) from notifications where status = 'PENDING')::int as pending,
                  (select count(*) from notifications where status = 'PROCESSING')::int as processing,
                  (select count(*) from notification_dlq where redriven_at is null)::int as dead,
                  coalesce((select extract(epoch from clock_timestamp() - next_retry_at) * 1000
                              from notifications
                             where status = 'PENDING' and next_retry_at <= now()
                             order by next_retry_at limit 1), 0)::float8 as "oldestDueMs"`,
  });
  return rows[0] as NotificationBacklog;
}
