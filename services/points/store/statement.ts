/** A user's transactions, newest first, each with the balance after it. */
import { type Db, omitNulls } from "@todoke/kernel/db";
import type { Kind } from "../ledger/account.ts";
import { timeSql } from "./time.ts";

export interface StatementRow {
  readonly transaction_id: string;
  readonly user_id: string;
  readonly kind: Kind;
  /** The change of the balance. */
  readonly point_amount: bigint;
  readonly moved: bigint;
  readonly balance: bigint;
  readonly held: bigint;
  readonly version: bigint;
  readonly from_account: string;
  readonly to_account: string;
  readonly reason?: string;
  readonly source?: string;
  readonly source_id?: string;
  readonly refers_to?: string;
  readonly created_at: string;
}

export interface StatementPage {
  readonly userId: string;
  /** The version of the last row of the previous page. */
  readonly before?: string | undefined;
  readonly limit: number;
  readonly kinds?: readonly Kind[] | undefined;
  readonly source?: string | undefined;
  readonly sourceId?: string | undefined;
  /** Posted at this time or later. */
  readonly from?: string | undefined;
  /** Posted before this time. */
  readonly to?: string | undefined;
}

/** Versions grow with time, so a time range is read as a range of versions and uses the same index. */
export const statementSql = `
select t.id as transaction_id, t.user_id, t.kind, t.point_amount, t.moved, t.balance_after as balance, t.held_after as held,
       t.version, t.from_account, t.to_account, t.reason, t.source, t.source_id, t.refers_to,
       ${timeSql("t.created_at")} as created_at
  from point_transactions t
 where t.user_id = $1 and t.version < coalesce($2::bigint, 9223372036854775807)
   and ($3::text[] is null or t.kind = any($3)) and ($4::text is null or t.source = $4)
   and ($5::text is null or t.source_id = $5)
   and t.version >= coalesce((select f.version from point_transactions f where f.user_id = $1 and f.created_at >= $6::timestamptz
                               order by f.created_at, f.version limit 1),
                             case when $6::timestamptz is null then 1 else 9223372036854775807 end)
   and t.version < coalesce((select u.version from point_transactions u where u.user_id = $1 and u.created_at >= $7::timestamptz
                              order by u.created_at, u.version limit 1), 9223372036854775807)
 order by t.version desc limit $8`;

export async function selectStatement(db: Db, page: StatementPage): Promise<StatementRow[]> {
  const { rows } = await db.query<StatementRow>({
    name: "select point statement",
    text: statementSql,
    values: [
      page.userId,
      page.before ?? null,
      page.kinds ?? null,
      page.source ?? null,
      page.sourceId ?? null,
      page.from ?? null,
      page.to ?? null,
      page.limit,
    ],
  });
  return rows.map((row) => omitNulls(row));
}
