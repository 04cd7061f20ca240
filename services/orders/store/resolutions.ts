/** How operators resolved unresolved orders. Never deleted. */
import type { Tx } from "@todoke/kernel/db";

export interface Resolution {
  readonly orderRowId: string;
  readonly as: "taken" | "not-taken";
  readonly reason: string;
  readonly by: string;
}

export async function insertResolution(tx: Tx, { orderRowId, as, reason, by }: Resolution): Promise<void> {
  await tx.query({
    name: "insert resolution",
    text: `insert into order_resolutions (order_row_id, client_order_id, "as", reason, by)
           select o.id, o.client_order_id, $2, $3, $4 from outbox_orders o where o.id = $1`,
    values: [orderRowId, as, reason, by],
  });
}
