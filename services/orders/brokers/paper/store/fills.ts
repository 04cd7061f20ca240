/** Fills of the paper broker's resting orders. */
import type { Db } from "@todoke/kernel/db";
import type { WireFill, WireOrder } from "../../http/protocol.ts";
import { fillJson, type Market, marketPrice, midPrice, orderColumns } from "./orders.ts";

export interface Match {
  readonly clientOrderId: string;
  readonly market: Market;
  readonly seed: number;
}

/**
 * Compares a resting order with the market, and fills it if its price allows: half of it, in whole steps, and the rest at the next
 * comparison. The mid price of each comparison follows from the seed.
 */
const matchSql = `
with resting as materialized (
  select o.* from paper_broker.orders o where o.client_order_id = $1 and o.status = 'open' for update
),
priced as (
  select r.*, $3::numeric as tick,
         ${midPrice({ referencePrice: "$2", instrument: "r.instrument", moment: "$5::text || ' ' || $1::text || ' ' || r.matches" })} as mid
    from resting r
),
met as (
  select p.*, trim_scale(${marketPrice}) as market,
         coalesce(nullif(case p.filled_qty when 0 then floor(p.qty / 2 / $4::numeric) * $4::numeric end, 0), p.qty - p.filled_qty) as part
    from priced p
),
filled as (
  insert into paper_broker.fills (order_position, n, qty, price)
  select m.position, (select count(*) + 1 from paper_broker.fills f where f.order_position = m.position), m.part, m.market
    from met m where case m.side when 'BUY' then m.limit_price >= m.market else m.limit_price <= m.market end
  returning qty, price
)
update paper_broker.orders o
   set matches = o.matches + 1, filled_qty = o.filled_qty + coalesce(f.qty, 0), price = coalesce(f.price, o.price),
       status = case when o.filled_qty + f.qty = o.qty then 'filled' else 'open' end
  from resting r left join filled f on true
 where o.position = r.position`;

export async function matchOrder(db: Db, { clientOrderId, market, seed }: Match): Promise<void> {
  const { referencePrice, tick = null, step = null } = market;
  await db.query({
    name: "paper match",
    text: matchSql,
    values: [clientOrderId, referencePrice, tick, step, seed],
  });
}

export interface FillsPage {
  readonly clientOrderId: string;
  readonly after: number;
  readonly limit: number;
}

/** One snapshot of an order and its fills. */
export async function selectFills(
  db: Db,
  { clientOrderId, after, limit }: FillsPage,
): Promise<{ readonly order: WireOrder; readonly fills: readonly WireFill[] }> {
  const { rows } = await db.query<WireOrder & { fills: readonly WireFill[] }>({
    name: "paper fills",
    text: `select ${orderColumns("o")},
                  coalesce((select json_agg(${fillJson("f")} order by f.n)
                              from (select * from paper_broker.fills f where f.order_position = o.position and f.n > $2
                                     order by f.n limit $3) f), '[]') as fills
             from paper_broker.orders o where o.client_order_id = $1`,
    values: [clientOrderId, after, limit],
  });
  const [{ fills, ...order }] = rows as [WireOrder & { fills: readonly WireFill[] }];
  return { order, fills };
}
