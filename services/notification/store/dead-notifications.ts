/** The table notification_dlq. Its insert is part of the sender's settlement (store/notifications.ts). */
import { rfc3339Sql, type Tx } from "@todoke/kernel/db";
import { createDeadLetters } from "@todoke/kernel/dead-letters";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import type { Data, Text } from "../events/templates.ts";
import { type InboxEntry, notifications } from "./notifications.ts";

interface DeadNotification {
  readonly dlq_id: string;
  readonly event_id: string;
  readonly user_id: string;
  readonly failed_at: string;
}

interface DeadNotificationDetail {
  readonly text: Text;
  readonly data: Data | null;
  /** The event as JSON; null if the notification is older than the column. */
  readonly payload: Readonly<Record<string, unknown>> | null;
  readonly redriven_at: string | null;
  /** The current status of the notification; null once it was sent and deleted by age. */
  readonly status: InboxEntry["status"] | null;
}

/** Dead letters of notifications. A redrive updates the notification and its dead letter in one transaction. */
export const deadNotifications = createDeadLetters<DeadNotificationDetail, DeadNotification>({
  claims: notifications,
  from: "notification_dlq r",
  isDead: "r.redriven_at is null",
  id: "r.notification_id",
  cursor: "r.dlq_id",
  about: "r.user_id",
  since: "r.failed_at",
  summary: `r.dlq_id::text as dlq_id, r.event_id, r.user_id, ${rfc3339Sql("r.failed_at")} as failed_at`,
  detail: `r.text, r.data, r.payload, ${rfc3339Sql("r.redriven_at")} as redriven_at,
    (select n.status from notifications n where n.notification_id = r.notification_id) as status`,
  isOfUser: (user) => `r.user_id = ${user}`,
  onRedriven: markRedriven,
  onDiscarded: deleteDeadLetters,
});

/** The notification itself is deleted by the discard: it also leaves the inbox of its user. */
async function deleteDeadLetters(tx: Tx, notificationIds: readonly string[]): Promise<void> {
  await tx.query(`delete from notification_dlq where notification_id = any($1::uuid[])`, [notificationIds]);
}

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
