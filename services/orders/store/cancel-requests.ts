/** Wishes to cancel what may have been sent; a worker of the sender carries them out. */
import type { Tx } from "@todoke/kernel/db";

/** The same wish twice is one. */
export async function insertCancelRequest(tx: Tx, orderRowId: string, by: string): Promise<void> {
  await tx.query({
    name: "insert cancel request",
    text: `insert into cancel_requests (order_row_id, adapter, requested_by)
           select id, adapter, $2 from outbox_orders where id = $1 on conflict (order_row_id) do nothing`,
    values: [orderRowId, by],
  });
}
