/** What is left to do, counted by the partial indexes that the work itself uses: finished rows cost nothing. */
import type { Db } from "@todoke/kernel/db";
import { notificationSql } from "./notifications.ts";

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
    text: `select ${notificationSql.count("PENDING")} as pending, ${notificationSql.count("PROCESSING")} as processing,
                  (select count(*) from notification_dlq where redriven_at is null)::int as dead,
                  ${notificationSql.oldestDueMs()} as "oldestDueMs"`,
  });
  return rows[0] as NotificationBacklog;
}
