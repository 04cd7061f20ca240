/** Reads of holds. One whose time is up is EXPIRED from that moment on, whether or not it is booked yet. */
import type { Db } from "@todoke/kernel/db";
import type { HoldStatus } from "../ledger/account.ts";
import { timeText } from "./time.ts";

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

const isOver = `(status = 'HELD' and ends_at <= statement_timestamp())`;

export async function selectHold(db: Db, holdId: string): Promise<HoldRow | undefined> {
  const { rows } = await db.query<HoldRow>({
    name: "select hold",
    text: `select hold_id, user_id, amount, captured, case when ${isOver} then amount else released end as released,
                  case when ${isOver} then 'EXPIRED' else status end as status,
                  ${timeText("ends_at")} as ends_at, ${timeText("created_at")} as created_at
             from point_holds where hold_id = $1`,
    values: [holdId],
  });
  return rows[0];
}
