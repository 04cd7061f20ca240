/** Who has points or holds whose time is up. */
import type { Db } from "@todoke/kernel/db";

/** A user with many is found many times: so more rows are read than users are wanted, and the next run finds the others. */
const rowsPerUser = 20;

/** What is said of infinity is what the two small indexes say: by them, and no other, are the rows found. */
export const usersToSettleText = `
select distinct user_id from (
  (select user_id from point_lots where is_open and expires_at <= statement_timestamp() and expires_at < 'infinity'
    order by expires_at limit $1)
  union all
  (select user_id from point_holds where status = 'HELD' and ends_at <= statement_timestamp() and ends_at < 'infinity'
    order by ends_at limit $1)
) due limit $2`;

/** Up to `limit` of them, out of those whose time has been up longest. Nobody is locked: some may be settled meanwhile. */
export async function selectUsersToSettle(db: Db, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ user_id: string }>({
    name: "select users to settle",
    text: usersToSettleText,
    values: [limit * rowsPerUser, limit],
  });
  return rows.map((row) => row.user_id);
}
