/** Users with lots or holds that have expired and are not posted yet. */
import type { Db } from "@todoke/kernel/db";

/** A user can have many expired rows, so more rows than users are read. The next run finds the rest. */
const rowsPerUser = 20;

/** `< 'infinity'` is the condition of the two partial indexes, so that the planner uses them. */
export const usersWithExpiredSql = `
select distinct user_id from (
  (select user_id from point_lots where is_open and expires_at <= statement_timestamp() and expires_at < 'infinity'
    order by expires_at limit $1)
  union all
  (select user_id from point_holds where status = 'HELD' and ends_at <= statement_timestamp() and ends_at < 'infinity'
    order by ends_at limit $1)
) due limit $2`;

/** Up to `limit` users with the oldest expired rows. They are not locked, so another process may post them first. */
export async function selectUsersWithExpired(db: Db, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ user_id: string }>({
    name: "select users with expired",
    text: usersWithExpiredSql,
    values: [limit * rowsPerUser, limit],
  });
  return rows.map((row) => row.user_id);
}
