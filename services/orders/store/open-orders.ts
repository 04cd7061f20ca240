/** Orders that the broker may still fill: not ended with us, or open there. */
import type { Queryable } from "@todoke/kernel/db";

export interface OpenOrdersFilter {
  readonly instrument?: string;
  readonly caller?: string;
  /** Only orders with a larger ID. */
  readonly after: string;
  readonly limit: number;
}

/** IDs, oldest first. */
export async function selectOpenOrders(
  db: Queryable,
  { instrument, caller, after, limit }: OpenOrdersFilter,
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: "select open orders",
    text: `select id::text as id from outbox_orders
            where (status in ('pending', 'sending', 'failed', 'unknown') or execution = 'open')
              and id > $1 and ($2::text is null or instrument = $2) and ($3::text is null or caller = $3)
            order by outbox_orders.id limit $4`,
    values: [after, instrument ?? null, caller ?? null, limit],
  });
  return rows.map(({ id }) => id);
}
