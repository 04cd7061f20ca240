/** Records the dispatch of an order before its request is sent, so that a crash leaves the order unresolved, not lost. */
import { type Db, runStatement } from "@todoke/kernel/db";
import type { ClaimedOrder } from "./claimed-orders.ts";
import { ordersSql } from "./outbox-orders.ts";

export interface Dispatch {
  readonly order: ClaimedOrder;
  /** The timestamp that the request will carry. */
  readonly timestamp: Date;
  /** How long from now the broker may take the request; 0 if the broker guarantees no end. */
  readonly windowMs: number;
  readonly leaseMs: number;
}

/** `lost`: another worker has claimed the order since. */
export type DispatchResult = "dispatched" | "halted" | "cancelled" | "lost";

const dispatchSql = `
with stop as materialized (
  select exists (select from trading_state s where s.scope in ('*', $5) and s.mode <> 'active') as halted,
         exists (select from cancel_requests c where c.order_row_id = $1 and c.status in ('requested', 'sending')) as cancelled
),
dispatched as (
  ${ordersSql.updateClaimedRow({
    where: "t.status = 'sending' and not (select halted or cancelled from stop)",
    set: `in_doubt_since = coalesce(t.in_doubt_since, clock_timestamp()),
         first_sent_at = coalesce(t.first_sent_at, $3),
         -- Requests that are ruled out do not count: their timestamp may come from a clock that was wrong.
         last_sent_at = case when t.in_doubt_since is null then $3::timestamptz else greatest(t.last_sent_at, $3) end,
         window_ends_at = case when $6::float8 > 0
           then greatest(case when t.in_doubt_since is not null then t.window_ends_at end,
                         clock_timestamp() + $6::float8 * interval '1 millisecond') end`,
    lease: { renewMs: "$4::float8" },
  })}
)
select exists (select from dispatched) as dispatched, halted, cancelled from stop`;

/**
 * Takes effect only under the order's claim, while trading is active and no cancel is requested. The lease is renewed, so that it
 * outlasts the request.
 */
export async function recordDispatch(
  db: Db,
  { order, timestamp, windowMs, leaseMs }: Dispatch,
): Promise<DispatchResult> {
  const { key, epoch } = order.claim;
  const { rows } = await runStatement<{ dispatched: boolean; halted: boolean; cancelled: boolean }>(db, {
    name: "record dispatch",
    text: dispatchSql,
    values: [key, epoch, timestamp.toISOString(), leaseMs, order.instrument, windowMs],
  });
  const [row] = rows;
  if (row?.dispatched) return "dispatched";
  if (row?.halted) return "halted";
  return row?.cancelled ? "cancelled" : "lost";
}
