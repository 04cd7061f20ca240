/**
 * A user's inbox, followed from a position on.
 *
 * A position is `<xid>.<notification_id>`: the transaction that wrote the row, and the row. Transactions do not commit in
 * the order in which they began, so whoever follows a number that was drawn at the insert passes over what commits late.
 * Here a row counts once every transaction that could still write one before it has ended: what lies before a position
 * never changes again. The price: a transaction that writes and stays open, anywhere on the server, holds news back.
 */
import { type Db, utcText } from "@todoke/kernel/db";
import type { Data, Text } from "../templates/templates.ts";

export type Position = string;

/** For schemas. 19 digits are more than any transaction's number will have, and fit the type. */
export const positionPattern = "(?:0|[1-9][0-9]{0,18})\\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const beforeAll: Position = "0.00000000-0000-0000-0000-000000000000";

export interface UserNotification {
  readonly notification_id: string;
  readonly event_type: string;
  readonly text: Text;
  readonly data: Data | null;
  readonly occurred_at: string;
}

/** The oldest transaction that has not ended: all before it have. */
const horizon = "pg_snapshot_xmin(pg_current_snapshot())";
const shown = `n.notification_id, n.event_type, n.text, n.data, ${utcText("n.occurred_at")} as occurred_at`;

const partsOf = (position: Position) => position.split(".") as [xid: string, notificationId: string];

export interface InboxStart {
  /** The position of the user's last row. It is a row's, and so as durable as the row: a crash cannot take it back. */
  readonly latest: Position;
  /** Whether `lastSeen` lies in this database's past. One that another database gave may not. */
  readonly isPast: boolean;
}

export async function selectStart(db: Db, userId: string, lastSeen = beforeAll): Promise<InboxStart> {
  const { rows } = await db.query<{ latest: Position | null; isPast: boolean }>({
    name: "select inbox start",
    text: selectStartSql,
    values: [userId, partsOf(lastSeen)[0]],
  });
  return { latest: rows[0]?.latest ?? beforeAll, isPast: rows[0]?.isPast ?? false };
}

export const selectStartSql = `
  select (select n.xid::text || '.' || n.notification_id
            from notifications n
           where n.user_id = $1 and n.xid < ${horizon}
           order by n.xid desc, n.notification_id desc
           limit 1) as latest,
         $2::xid8 < ${horizon} as "isPast"`;

export interface StreamCursor {
  readonly userId: string;
  readonly position: Position;
}

export interface NewNotification extends UserNotification {
  /** Whose it is: a place in the followers asked for. */
  readonly place: number;
  readonly position: Position;
  /** False while a row may still come before it: then it is not to be told yet. */
  readonly isSettled: boolean;
}

/** What is new to each follower, up to `each` rows for everyone, in the order of their positions: one statement for all. */
export async function selectNew(db: Db, followers: readonly StreamCursor[], each: number): Promise<NewNotification[]> {
  const positions = followers.map(({ position }) => partsOf(position));
  const users = followers.map(({ userId }) => userId);
  const [xids, ids] = [positions.map(([xid]) => xid), positions.map(([, id]) => id)];
  const { rows } = await db.query<NewNotification>({
    name: "select inbox news",
    text: selectNewSql,
    values: [users, xids, ids, each],
  });
  return rows;
}

export const selectNewSql = `
  select f.place::int - 1 as place, n.position, n.notification_id, n.event_type, n.text, n.data, n.occurred_at,
         n."isSettled"
    from unnest($1::text[], $2::xid8[], $3::uuid[]) with ordinality as f(user_id, xid, notification_id, place)
   cross join lateral (
         select ${shown}, n.xid, n.xid::text || '.' || n.notification_id as position, n.xid < ${horizon} as "isSettled"
           from notifications n
          where n.user_id = f.user_id and (n.xid, n.notification_id) > (f.xid, f.notification_id)
          order by n.xid, n.notification_id
          limit $4) n
   order by f.place, n.xid, n.notification_id`;
