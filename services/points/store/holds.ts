/** Reads of holds. A hold shows as EXPIRED from `ends_at` on, even if its expiry is not posted yet. */
import type { Db } from "@todoke/kernel/db";
import type { HoldStatus } from "../ledger/account.ts";
import { timeSql } from "./time.ts";

export interface HoldRow {
  readonly hold_id: string;
  readonly user_id: string;
  readonly amount: bigint;
  readonly captured: bigint;
  readonly released: bigint;
  readonly status: HoldStatus;
  readonly ends_at: string;
  readonly created_at: string;
}

const isExpired = `(status = 'HELD' and ends_at <= statement_timestamp())`;

export async function selectHold(db: Db, holdId: string): Promise<HoldRow | undefined> {
  const { rows } = await db.query<HoldRow>({
    name: "select hold",
    text: `select hold_id, user_id, amount, captured, case when ${isExpired} then amount else released end as released,
                  case when ${isExpired} then 'EXPIRED' else status end as status,
                  ${timeSql("ends_at")} as ends_at, ${timeSql("created_at")} as created_at
             from point_holds where hold_id = $1`,
    values: [holdId],
  });
  return rows[0];
}
