/** Orders as people name them: by the key that a caller chose, or by the name that the broker knows. */
import type { Queryable } from "@todoke/kernel/db";

export interface OrderName {
  /** An idempotency key, or a client order id. */
  readonly name: string;
  /** Only of this caller. */
  readonly caller?: string | undefined;
}

export interface NamedOrder {
  readonly id: string;
  readonly caller: string;
}

// Callers who chose the same key, for somebody to choose from.
const namedMax = 20;

/** More than one where several callers chose the same key; the oldest first. */
export async function selectOrdersNamed(db: Queryable, { name, caller }: OrderName): Promise<readonly NamedOrder[]> {
  const { rows } = await db.query<NamedOrder>({
    name: "select orders named",
    text: `select id::text as id, caller from outbox_orders
            where (idempotency_key = $1 or client_order_id = $1) and ($2::text is null or caller = $2)
            order by outbox_orders.id limit ${namedMax}`,
    values: [name, caller ?? null],
  });
  return rows;
}
