/**
 * Reads a user inbox from a position on.
 *
 * A position is `<xid>.<notification_id>`: the transaction that inserted the row, and the row. Transactions do not commit in
 * the order of their ids, so a row is stable only once every transaction with a lower id has ended: then nothing can be
 * inserted before it. The price is that an open transaction that writes, anywhere on the server, delays streams.
 */
import { type Db, utcText } from "@todoke/kernel/db";
import type { Data, Text } from "../events/templates.ts";

export type Position = string;

/** For schemas. 19 digits fit the type and are more than a transaction id will have. */
export const positionPattern = "(?:0|[1-9][0-9]{0,18})\\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const firstPosition: Position = "0.00000000-0000-0000-0000-000000000000";

export interface UserNotification {
  readonly notification_id: string;
  readonly event_type: string;
  readonly text: Text;
  readonly data: Data | null;
  readonly occurred_at: string;
}

/** The id of the oldest transaction that is still open. */
const oldestOpenXid = "pg_snapshot_xmin(pg_current_snapshot())";
const columns = `n.notification_id, n.event_type, n.text, n.data, ${utcText("n.occurred_at")} as occurred_at`;

const parsePosition = (position: Position) => position.split(".") as [xid: string, notificationId: string];

export interface InboxStart {
  /** The position of the user's last stable row. It belongs to a row, so a crash cannot lose it. */
  readonly latest: Position;
  /** False if `lastSeen` is later than anything in this database, as after a restore. */
  readonly isPast: boolean;
}

export async function selectStart(db: Db, userId: string, lastSeen = firstPosition): Promise<InboxStart> {
  const { rows } = await db.query<{ latest: Position | null; isPast: boolean }>({
    name: "select inbox start",
    text: selectStartSql,
    values: [userId, parsePosition(lastSeen)[0]],
  });
  return { latest: rows[0]?.latest ?? firstPosition, isPast: rows[0]?.isPast ?? false };
}

export const selectStartSql = `
  select (select n.xid::text || '.' || n.notification_id
            from notifications n
           where n.user_id = $1 and n.xid < ${oldestOpenXid}
           order by n.xid desc, n.notification_id desc
           limit 1) as latest,
         $2::xid8 < ${oldestOpenXid} as "isPast"`;

export interface StreamCursor {
  readonly userId: string;
  readonly position: Position;
}

export interface StreamedNotification extends UserNotification {
  /** The index of the cursor that the row belongs to. */
  readonly cursorIndex: number;
  readonly position: Position;
  /** False while another row may still be inserted before it: then it must not be sent. */
  readonly isStable: boolean;
}

/** Up to `limit` rows after each cursor, in the order of their positions, by one statement. */
export async function selectNewNotifications(
  db: Db,
  cursors: readonly StreamCursor[],
  limit: number,
): Promise<StreamedNotification[]> {
  const positions = cursors.map(({ position }) => parsePosition(position));
  const users = cursors.map(({ userId }) => userId);
  const [xids, ids] = [positions.map(([xid]) => xid), positions.map(([, id]) => id)];
  const { rows } = await db.query<StreamedNotification>({
    name: "select new notifications",
    text: selectNewNotificationsSql,
    values: [users, xids, ids, limit],
  });
  return rows;
}

export const selectNewNotificationsSql = `
  select c.ordinal::int - 1 as "cursorIndex", n.position, n.notification_id, n.event_type, n.text, n.data, n.occurred_at,
         n."isStable"
    from unnest($1::text[], $2::xid8[], $3::uuid[]) with ordinality as c(user_id, xid, notification_id, ordinal)
   cross join lateral (
         select ${columns}, n.xid, n.xid::text || '.' || n.notification_id as position, n.xid < ${oldestOpenXid} as "isStable"
           from notifications n
          where n.user_id = c.user_id and (n.xid, n.notification_id) > (c.xid, c.notification_id)
          order by n.xid, n.notification_id
          limit $4) n
   order by c.ordinal, n.xid, n.notification_id`;
