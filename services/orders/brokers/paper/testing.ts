/** Trades with resting orders of the paper broker, as a test wants them. */
import type { Db } from "@todoke/kernel/db";

export interface Trade {
  readonly qty: string;
  readonly price: string;
}

export async function fillPaperOrder(db: Db, clientOrderId: string, { qty, price }: Trade): Promise<void> {
  await db.query(
    `with filled as (
       update paper_broker.orders set filled_qty = filled_qty + $2::numeric, price = $3::numeric,
              status = case when filled_qty + $2::numeric = qty then 'filled' else status end
        where client_order_id = $1 and status = 'open' returning position)
     insert into paper_broker.fills (order_position, n, qty, price)
     select f.position, (select count(*) + 1 from paper_broker.fills x where x.order_position = f.position), $2, $3 from filled f`,
    [clientOrderId, qty, price],
  );
}
