/** What is left to do, read by the partial indexes that the work itself uses: what has ended costs nothing. */
import type { Db } from "@todoke/kernel/db";

export interface OrderBacklog {
  readonly pending: number;
  readonly sending: number;
  readonly failed: number;
  readonly unknown: number;
  /** How long the order has been waiting that waits longest to be sent; 0 where none does. */
  readonly oldestPendingMs: number;
  readonly oldestUnresolvedMs: number;
  /** What the two sides' books did not agree on at the last look, over all brokers. */
  readonly mismatches: number;
  /** How long ago the books were last compared; where they never were, how long there have been orders. */
  readonly comparedAgoMs: number;
}

const oldest = (column: string, status: string, since = column) =>
  `coalesce((select extract(epoch from clock_timestamp() - ${column}) * 1000 from outbox_orders
              where status = '${status}' order by ${since} limit 1), 0)::float8`;

export async function selectBacklog(db: Db): Promise<OrderBacklog> {
  const { rows } = await db.query<OrderBacklog>({
    name: "select order backlog",
    text: `select (select count(*) from outbox_orders where status = 'pending')::int as pending,
                  (select count(*) from outbox_orders where status = 'sending')::int as sending,
                  (select count(*) from outbox_orders where status = 'failed')::int as failed,
                  (select count(*) from outbox_orders where status = 'unknown')::int as unknown,
                  ${oldest("created_at", "pending", "next_retry_at")} as "oldestPendingMs",
                  ${oldest("in_doubt_since", "unknown")} as "oldestUnresolvedMs",
                  coalesce((select sum(mismatches) from reconciliations), 0)::int as mismatches,
                  coalesce(extract(epoch from clock_timestamp() - coalesce(
                    (select max(last_ok_at) from reconciliations),
                    (select created_at from outbox_orders order by created_at limit 1))) * 1000, 0)::float8 as "comparedAgoMs"`,
  });
  return rows[0] as OrderBacklog;
}
