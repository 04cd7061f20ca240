/** The table notifications: claimed by the sender, inserted for events, read as a user inbox. */
import { createClaims, tableSql } from "@todoke/kernel/claims";
import { type Db, rfc3339Sql, type Tx } from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import type { Data, Text } from "../events/templates.ts";

/** A notification as a sender gets it. */
export interface Notification {
  readonly notificationId: string;
  readonly eventId: string;
  readonly userId: string;
  readonly eventType: string;
  readonly text: Text;
  readonly data: Data | null;
  /** RFC 3339, UTC. */
  readonly occurredAt: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The age of the event at the claim, by the database's clock. */
  readonly ageMs: number;
}

export const notifications = createClaims<Notification>({
  table: "notifications",
  key: "notification_id",
  keyType: "uuid",
  states: { ready: "PENDING", claimed: "PROCESSING", done: "SENT", dead: "FAILED" },
  columns: { doneAt: "sent_at" },
  select: `c.notification_id as "notificationId", c.event_id as "eventId", c.user_id as "userId",
    c.event_type as "eventType", c.text, c.data, ${rfc3339Sql("c.occurred_at")} as "occurredAt", c.headers,
    (extract(epoch from clock_timestamp() - c.occurred_at) * 1000)::float8 as "ageMs"`,
  // A notification that fails again after a redrive reopens its row.
  onDeadSql: `insert into notification_dlq as q
      (notification_id, event_id, user_id, event_type, text, data, payload, attempt_count, last_error)
    select notification_id, event_id, user_id, event_type, text, data, payload, attempt_count, last_error from dead_rows
    on conflict (notification_id) do update
       set data = excluded.data, payload = excluded.payload, attempt_count = excluded.attempt_count, last_error = excluded.last_error,
           failed_at = now(), redriven_at = null`,
});

const notificationSql = tableSql(notifications.table);

export interface NotificationRow {
  readonly notification_id: string;
  readonly event_id: string;
  readonly user_id: string;
  readonly event_type: string;
  readonly text: Text;
  readonly data?: Data;
  /** The event as JSON. Only a dead letter needs it. */
  readonly formatPayload: () => unknown;
  readonly occurred_at: string;
  readonly headers: Readonly<Record<string, string>>;
}

const rowColumns = `notification_id uuid, event_id uuid, user_id text, event_type text, text jsonb, data jsonb,
    occurred_at timestamptz`;

/**
 * Inserts PENDING notifications, which a sender claims. The inbox lets each event through once. The id, which is derived from
 * event and user, also covers a redelivery after the inbox row was deleted by age.
 */
export async function insertNotifications(tx: Tx, rows: readonly NotificationRow[]): Promise<void> {
  await tx.query({
    name: "insert notifications",
    text: `insert into notifications
             (notification_id, event_id, user_id, event_type, text, data, occurred_at, payload, headers)
           select notification_id, event_id, user_id, event_type, text, data, occurred_at, payload, headers
             from jsonb_to_recordset($1::jsonb) as n(${rowColumns}, payload jsonb, headers jsonb)
            order by notification_id
           on conflict do nothing`,
    values: [JSON.stringify(rows.map(({ formatPayload, ...row }) => ({ ...row, payload: formatPayload() })))],
  });
}

/**
 * Inserts notifications that are sent in this transaction, and returns them. They are never sent again, so the row has neither
 * the trace nor the event, which only sending and its dead letter need. Rejects if one of them is there already, which is rare:
 * to ignore it would cost every row a record of the write-ahead log.
 */
export async function insertSent(tx: Tx, rows: readonly NotificationRow[]): Promise<Notification[]> {
  // An event may list a user twice.
  const unique = [...new Map(rows.map((row) => [row.notification_id, row])).values()];
  const parameter = unique.map(({ formatPayload: _, headers: __, ...row }) => row);
  const inserted = await tx.query<{ notification_id: string; age_ms: number }>({
    name: "insert sent notifications",
    text: `insert into notifications
             (notification_id, event_id, user_id, event_type, text, data, occurred_at, ${notificationSql.doneColumns})
           select notification_id, event_id, user_id, event_type, text, data, occurred_at, ${notificationSql.doneValues}
             from jsonb_to_recordset($1::jsonb) as n(${rowColumns})
            order by notification_id
           returning notification_id, (extract(epoch from clock_timestamp() - occurred_at) * 1000)::float8 as age_ms`,
    values: [JSON.stringify(parameter)],
  });
  const ages = new Map(inserted.rows.map(({ notification_id, age_ms }) => [notification_id, age_ms]));
  return unique.map((row) => toNotification(row, ages.get(row.notification_id) ?? 0));
}

const toNotification = (row: NotificationRow, ageMs: number): Notification => ({
  notificationId: row.notification_id,
  eventId: row.event_id,
  userId: row.user_id,
  eventType: row.event_type,
  text: row.text,
  data: row.data ?? null,
  occurredAt: row.occurred_at,
  headers: row.headers,
  ageMs,
});

export interface InboxEntry {
  readonly notification_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly text: Text;
  readonly data: Data | null;
  readonly status: "PENDING" | "PROCESSING" | "SENT" | "FAILED";
  readonly attempt_count: number;
  readonly occurred_at: string;
  readonly created_at: string;
  readonly next_retry_at: string | null;
  readonly sent_at: string | null;
  readonly last_error: string | null;
  /** Of the next page, if this is the last entry of a page. */
  readonly cursor: string;
}

export interface InboxPage {
  readonly userId: string;
  readonly limit: number;
  /** The `cursor` of the last entry of the previous page. */
  readonly after?: string;
}

/** One user's notifications, newest first. */
export async function selectInbox(db: Db, { userId, limit, after }: InboxPage): Promise<InboxEntry[]> {
  const [micros, id] = after?.split(".") ?? [];
  const { rows } = await db.query<InboxEntry>({
    name: `select inbox${after ? " after" : ""}`,
    text: `select notification_id, event_id, event_type, text, data, status, ${notificationSql.workColumns("n")},
                  ${rfc3339Sql("occurred_at")} as occurred_at, ${rfc3339Sql("created_at")} as created_at,
                  ${rfc3339Sql("sent_at")} as sent_at,
                  (extract(epoch from occurred_at) * 1000000)::bigint || '.' || notification_id as cursor
             from notifications n
            where user_id = $1
              ${after ? `and (occurred_at, notification_id) < ('epoch'::timestamptz + $3 * interval '1 microsecond', $4::uuid)` : ""}
            order by occurred_at desc, notification_id desc
            limit $2`,
    values: [userId, limit, ...(after ? [micros, id] : [])],
  });
  return rows;
}

export const sentNotifications = (keepMs: number): RetentionPolicy => ({
  table: "notifications",
  finished: "status = 'SENT'",
  since: "sent_at",
  sweeps: true,
  keepMs,
});
