/** The look-ups of an id in the tables of notifications. */
import { claimEntrySql, entriesSql, type Lookup } from "@todoke/kernel/why";
import { notifications } from "./notifications.ts";

const rowsMax = 20;
const ofUserMax = 20;

const links = [
  ["user", "n.user_id"],
  ["event", "n.event_id"],
  ["notification", "n.notification_id"],
] as const;

/** The notification, its sending, and its dead letter. `from` has the rows as `n`. */
const notificationEntries = (from: string) =>
  [
    entriesSql({
      ...claimEntrySql(notifications.table, "n"),
      kind: "'notification'",
      id: "n.notification_id",
      at: "n.created_at",
      traceId: "n.headers ->> 'trace_id'",
      detail: "n.event_type || ' to ' || n.user_id",
      links,
      from,
    }),
    entriesSql({
      kind: "'sent'",
      id: "n.notification_id",
      at: "n.sent_at",
      detail: "n.event_type || ' to ' || n.user_id",
      links,
      from: `(select n.* from ${from}) n where n.sent_at is not null`,
    }),
    entriesSql({
      kind: "'dead'",
      id: "n.notification_id",
      at: "q.failed_at",
      state: "case when q.redriven_at is null then 'FAILED' else 'redriven' end",
      error: "case when q.redriven_at is null then q.last_error end",
      detail: "'the last attempt failed: ' || q.last_error",
      links,
      from: `(select n.* from ${from}) n
        cross join lateral (select * from notification_dlq d where d.notification_id = n.notification_id limit 1) q`,
    }),
  ].join("\nunion all\n");

/** The id of a notification begins with the time of its event's id, so those of an event are in a short range of the primary key. */
const ofEvent = `(
  select e.* from notifications e
   where e.notification_id >= (substr($1::text, 1, 14) || '0000-0000-000000000000')::uuid
     and e.notification_id <= (substr($1::text, 1, 14) || 'ffff-ffff-ffffffffffff')::uuid
     and e.event_id = $1::uuid
   limit ${rowsMax}) n`;

/** The latest, and those that are dead however old they are. */
const ofUser = `(
  select e.* from notifications e where e.notification_id = any(
    array(select l.notification_id from notifications l where l.user_id = $1
           order by l.occurred_at desc, l.notification_id desc limit ${ofUserMax})
    || array(select d.notification_id from notification_dlq d where d.user_id = $1 and d.redriven_at is null
              order by d.dlq_id desc limit ${ofUserMax}))
  limit ${2 * ofUserMax}) n`;

export const notificationLookups: readonly Lookup[] = [
  {
    by: "notification",
    shape: "uuid",
    sql: notificationEntries("notifications n where n.notification_id = $1::uuid"),
  },
  { by: "event", shape: "uuid", sql: notificationEntries(ofEvent) },
  { by: "user", shape: "text", sql: notificationEntries(ofUser) },
];
