/** Reads the changes of an entitlement from the audit. */

import { type Db, rfc3339Sql } from "@todoke/kernel/db";
import type { Static } from "typebox";
import type { HistoryView } from "../routes/schemas.ts";
import type { EntitlementName } from "./entitlements.ts";

export type HistoryRow = Static<typeof HistoryView>;

export interface HistoryPage extends EntitlementName {
  /** The last version of the previous page. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** Newest version first. PostgreSQL probes the index of each partition and merges the results. */
export async function selectHistory(db: Db, page: HistoryPage): Promise<HistoryRow[]> {
  const { rows } = await db.query<HistoryRow>({
    name: "select history",
    text: `select h.version::float8 as version, action, source, source_id, caller, event_id,
                  ${rfc3339Sql("created_at")} as created_at
             from entitlement_audit h
            where user_id = $1 and stock_keeping_unit = $2 and h.version < coalesce($3::bigint, 9223372036854775807)
            order by h.version desc limit $4`,
    values: [page.userId, page.stockKeepingUnit, page.before ?? null, page.limit],
  });
  return rows;
}
