/** Reads of what users have. */
import type { Db } from "@todoke/kernel/db";

export interface EntitlementRow {
  readonly stock_keeping_unit: string;
  readonly status: "ACTIVE" | "REVOKED";
  readonly version: number;
  readonly updated_at: string;
}

// A user with more products than this is a test or an attack; paging comes with the filters.
const entitlementsMax = 1_000;

export async function selectEntitlements(db: Db, userId: string): Promise<EntitlementRow[]> {
  const { rows } = await db.query<EntitlementRow>({
    name: "select entitlements",
    text: `select stock_keeping_unit, status, version::float8 as version,
                  to_char(updated_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as updated_at
             from entitlements where user_id = $1 order by stock_keeping_unit limit ${entitlementsMax}`,
    values: [userId],
  });
  return rows;
}
