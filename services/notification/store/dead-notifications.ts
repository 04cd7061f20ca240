/** The table notification_dlq. Its insert is part of the sender's settlement (store/notifications.ts). */
import { type Db, type Tx, utcText } from "@todoke/kernel/db";
import { deadTable } from "@todoke/kernel/dead";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import type { Text } from "../events/templates.ts";
import { type InboxEntry, notifications } from "./notifications.ts";

export interface DeadNotification {
  readonly dlq_id: string;
  readonly notification_id: string;
  readonly event_id: string;
  readonly user_id: string;
  readonly event_type: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
  readonly failed_at: string;
}

const columns = `q.dlq_id::text as dlq_id, q.notification_id, q.event_id, q.user_id, q.event_type, q.attempt_count,
                 q.last_error, ${utcText("q.failed_at")} as failed_at`;

/** Open dead letters, oldest first; `after` is the dlq_id of the last one of the previous page. */
export async function selectDeadNotifications(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<DeadNotification[]> {
  const { rows } = await db.query<DeadNotification>({
    name: "select dead notifications",
    text: `select ${columns} from notification_dlq q
            where q.redriven_at is null and q.dlq_id > $1 order by q.dlq_id limit $2`,
    values: [after, limit],
  });
  return rows;
}

export interface DeadNotificationDetail {
  readonly dlq_id: string;
  readonly event_id: string;
  readonly user_id: string;
  readonly failed_at: string;
  readonly text: Text;
  readonly redriven_at: string | null;
  /** The current status of the notification; null once it was sent and deleted by age. */
  readonly status: InboxEntry["status"] | null;
}

/** Dead letters of notifications. A redrive updates the notification and its dead letter in one transaction. */
export const deadNotifications = deadTable<DeadNotificationDetail>({
  claims: notifications,
  from: "notification_dlq r",
  isDead: "r.redriven_at is null",
  id: "r.notification_id",
  cursor: "r.dlq_id",
  about: "r.user_id",
  since: "r.failed_at",
  whole: `r.dlq_id::text as dlq_id, r.event_id, r.user_id, ${utcText("r.failed_at")} as failed_at, r.text,
    ${utcText("r.redriven_at")} as redriven_at,
    (select n.status from notifications n where n.notification_id = r.notification_id) as status`,
  whenRedriven: markRedriven,
});

async function markRedriven(tx: Tx, notificationIds: readonly string[]): Promise<void> {
  await tx.query({
    name: "mark redriven",
    text: `update notification_dlq set redriven_at = now() where notification_id = any($1::uuid[])`,
    values: [notificationIds],
  });
}

/** A row whose notification has failed again has `redriven_at = null` and is kept. */
export const redrivenNotifications = (keepMs: number): RetentionPolicy => ({
  table: "notification_dlq",
  finished: "redriven_at is not null",
  since: "redriven_at",
  keepMs,
});
