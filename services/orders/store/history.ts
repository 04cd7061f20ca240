/** Every state transition of an order. Triggers of outbox_orders write it, and it is never changed. */

import { type Queryable, rfc3339Sql } from "@todoke/kernel/db";
import type { Static } from "typebox";
import type { StepView } from "../routes/schemas.ts";

export type OrderStep = Readonly<Static<typeof StepView>>;

export interface HistoryPage {
  readonly id: string;
  /** Only this caller's order. */
  readonly caller?: string | undefined;
  readonly after: number;
  readonly limit: number;
}

/** Oldest first. */
export async function selectHistory(db: Queryable, { id, caller, after, limit }: HistoryPage): Promise<OrderStep[]> {
  const { rows } = await db.query<OrderStep>({
    name: "select order history",
    text: `select place, from_status as "from", to_status as "to", attempt, code, detail, ${rfc3339Sql("at")} as at, by
             from order_status_history
            where order_row_id = $1 and place > $2
              and ($4::text is null or exists (select from outbox_orders o where o.id = $1 and o.caller = $4))
            order by place limit $3`,
    values: [id, after, limit, caller ?? null],
  });
  return rows;
}
