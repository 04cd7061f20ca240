/** Who has points or holds whose time is up. */
import type { Db } from "@todoke/kernel/db";

/** A user with many is found many times: so more rows are read than users are wanted, and the next run finds the others. */
const rowsPerUser = 20;

const text = `
select distinct user_id from (
  (select user_id from point_lots where is_open and expires_at <= statement_timestamp()
    order by expires_at limit $1)
  union all
  (select user_id from point_holds where status = 'HELD' and ends_at <= statement_timestamp()
    order by ends_at limit $1)
) due limit $2`;

/** Up to `limit` of them, those first whose time has been up longest. Nobody is locked: some may be settled meanwhile. */
export async function selectUsersToSettle(db: Db, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ user_id: string }>({
    name: "select users to settle",
    text,
    values: [limit * rowsPerUser, limit],
  });
  return rows.map((row) => row.user_id);
}
