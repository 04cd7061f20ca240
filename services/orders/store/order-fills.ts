/**
 * Fills of orders. A fill, its event, the order's totals and the ledger's response are one commit, and a fill that was recorded
 * before changes nothing.
 */

import { randomUUIDv7 } from "node:crypto";
import { type Claimed, createClaims, tableSql } from "@todoke/kernel/claims";
import { type Db, type Queryable, recordsSql, rfc3339Sql, runStatement } from "@todoke/kernel/db";
import type { Static } from "typebox";
import type { BrokerFill, BrokerResult } from "../brokers/index.ts";
import type { FillView } from "../routes/schemas.ts";
import { insertOrderFilledEventsSql } from "./order-events.ts";
import { responseSql } from "./response.ts";

export interface FollowedOrder {
  readonly id: string;
  readonly clientOrderId: string;
  readonly position: string | null;
  /** How often the broker was asked since the last fill. */
  readonly checks: number;
}

export type ClaimedFollowedOrder = Claimed<FollowedOrder>;

/** They stay open while the broker is asked; only the lease keeps other workers away. */
export const followedOrders = createClaims<FollowedOrder>({
  table: "followed_orders",
  key: "order_row_id",
  keyType: "bigint",
  queue: "adapter",
  states: { ready: "open", claimed: "open", done: "ended", dead: "ended" },
  claim: { uncounted: true },
  select: `c.order_row_id::text as id, o.client_order_id as "clientOrderId", c.position, c.checks`,
  join: "join outbox_orders o on o.id = c.order_row_id",
});

const followedSql = tableSql(followedOrders.table);

/** CTEs over $1, the order's row ID: `new_fills`, those of the parameter that are not recorded, and their totals. */
export const newFillsSql = (parameter: string): string => `
new_fills as materialized (
  select d.*, row_number() over (order by d.ordinal) as n, sum(d.qty) over (order by d.ordinal) as running_qty,
         sum(d.qty * d.price) over (order by d.ordinal) as running_notional
    from (select distinct on (f.trade_id) f.*
            from ${recordsSql(parameter, "trade_id text, qty numeric, price numeric, filled_at timestamptz, event_id uuid", "f")}
           order by f.trade_id, f.ordinal) d
   where not exists (select from order_fills x where x.order_row_id = $1 and x.trade_id = d.trade_id)
),
fill_totals as materialized (
  select count(*)::int as fills, coalesce(sum(qty), 0) as qty, coalesce(sum(qty * price), 0) as notional from new_fills
)`;

/** CTEs that record `new_fills` of the row in `updated`, whose version and totals include them. */
export const insertFillsSql = `
insert_fills as (
  insert into order_fills (order_row_id, trade_id, version, qty, price, filled_at)
  select u.id, f.trade_id, u.version - t.fills + f.n, f.qty, f.price, f.filled_at
    from updated u cross join fill_totals t cross join new_fills f
),
insert_fill_events as (
  ${insertOrderFilledEventsSql("updated o cross join fill_totals t cross join new_fills f order by f.n")}
)`;

/** The parameter of `newFillsSql`. */
export const toFillRecords = (fills: readonly BrokerFill[]): string =>
  JSON.stringify(
    fills.map(({ tradeId, qty, price, filledAt }) => ({
      trade_id: tradeId,
      qty,
      price,
      filled_at: filledAt,
      event_id: randomUUIDv7(),
    })),
  );

/**
 * The order ends if the broker says so and every fill that it counts is recorded. If some are missing although it returned all, the
 * next check starts from the first fill again.
 */
export const recordFillsSql = `
with ${newFillsSql("$3")},
decision as materialized (
  select $4::text <> 'open' and not $6::boolean and o.filled_qty + t.qty = $5::numeric as ended,
         $4::text <> 'open' and not $6::boolean and o.filled_qty + t.qty <> $5::numeric as incomplete
    from fill_totals t cross join outbox_orders o where o.id = $1
),
followed as materialized (
  ${followedSql.updateClaimedRow({
    set: `status = case when (select ended from decision) then 'ended' else 'open' end,
         done_at = case when (select ended from decision) then clock_timestamp() end,
         position = case when (select incomplete from decision) then null else $7::text end,
         checks = case when (select fills from fill_totals) > 0 then 0 else t.checks + 1 end`,
    where: "t.status = 'open'",
    dueInMs:
      "(case when $6::boolean then 0 when (select fills from fill_totals) > 0 then $10::float8 else $8::float8 end)",
    lease: "end",
  })}
),
updated as materialized (
  update outbox_orders o
     set filled_qty = o.filled_qty + t.qty, filled_notional = o.filled_notional + t.notional, version = o.version + t.fills,
         execution = case when d.ended then $4 else o.execution end, broker_result = $9::jsonb, updated_at = clock_timestamp()
    from fill_totals t cross join decision d
   where o.id = $1 and exists (select from followed) and (t.fills > 0 or d.ended)
  returning o.*
),
${insertFillsSql},
results as materialized (select ${responseSql("u")} as response from updated u),
update_ledger as (
  update idempo_ledger l
     set answer = (select response from results),
         result_digest = 'sha256:' || encode(sha256((select response from results)), 'hex')
   where l.order_row_id = $1 and (select count(*) from updated) > 0
)
select exists (select from followed) as applied, (select fills from fill_totals) as fills, (select ended from decision) as ended`;

export interface FillsToRecord {
  readonly fills: readonly BrokerFill[];
  /** The order at the broker, no older than the fills. */
  readonly order: BrokerResult;
  readonly position: string | null;
  /** The broker has more fills than it returned. */
  readonly hasMore: boolean;
  /** Until the broker is asked again: without and with new fills. If it has more, it is asked at once. */
  readonly delayMs: number;
  readonly delayAfterFillMs: number;
}

export interface RecordFillsResult {
  /** False if another worker has claimed the order since. */
  readonly applied: boolean;
  /** How many were new. */
  readonly fills: number;
  readonly ended: boolean;
}

export async function recordFills(
  db: Db,
  { claim }: ClaimedFollowedOrder,
  { fills, order, position, hasMore, delayMs, delayAfterFillMs }: FillsToRecord,
): Promise<RecordFillsResult> {
  const { status, filledQty } = order;
  const values = [claim.key, claim.epoch, toFillRecords(fills), status, filledQty, hasMore, position, delayMs];
  const { rows } = await runStatement<RecordFillsResult>(db, {
    name: "record fills",
    text: recordFillsSql,
    values: [...values, JSON.stringify(toResultView(order)), delayAfterFillMs],
  });
  return rows[0] as RecordFillsResult;
}

/** The broker's result as the API returns it. */
export const toResultView = ({ status, filledQty, price, takenAt }: BrokerResult) => ({
  status,
  filled_qty: filledQty,
  price,
  taken_at: takenAt,
});

/** Has the broker asked about an open order now, because a cancel has probably ended it. */
export async function checkFillsNow(db: Db, orderRowId: string): Promise<void> {
  await runStatement(db, {
    name: "check fills now",
    text: followedSql.updateWaitingRows({
      state: "open",
      due: "later",
      where: "t.order_row_id = $1::bigint",
      dueInMs: "0",
      limit: "1",
    }),
    values: [orderRowId],
  });
}

export type FillRow = Readonly<Static<typeof FillView>>;

export interface FillsPage {
  readonly id: string;
  /** Only this caller's order. */
  readonly caller: string | undefined;
  readonly after: number;
  readonly limit: number;
}

/** In the order in which they were recorded. Undefined if there is no such order. */
export async function selectFills(
  db: Queryable,
  { id, caller, after, limit }: FillsPage,
): Promise<readonly FillRow[] | undefined> {
  const { rows } = await db.query<{ readonly fills: readonly FillRow[] }>({
    name: "select order fills",
    text: `select coalesce((select json_agg(p order by p.place)
                              from (select f.trade_id, f.version as place, trim_scale(f.qty)::text as qty, trim_scale(f.price)::text as price,
                                           ${rfc3339Sql("f.filled_at")} as filled_at, ${rfc3339Sql("f.recorded_at")} as recorded_at
                                      from order_fills f where f.order_row_id = o.id and f.version > $3
                                     order by f.version limit $4) p), '[]') as fills
             from outbox_orders o where o.id = $1 and ($2::text is null or o.caller = $2)`,
    values: [id, caller ?? null, after, limit],
  });
  return rows[0]?.fills;
}
