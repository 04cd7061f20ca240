/** The SQL of the paper broker: its orders and its prices. */
import { type Db, rfc3339Sql } from "@todoke/kernel/db";
import type { WireOrder } from "../../http/protocol.ts";
import type { BrokerOrder } from "../../index.ts";

export const orderColumns = (o: string) => `
  ${o}.client_order_id, 'paper-' || ${o}.position as broker_order_id, ${o}.instrument, ${o}.side, ${o}.qty::text as qty,
  ${o}.filled_qty::text as filled_qty, ${o}.price::text as price, ${o}.status, ${o}.why,
  ${rfc3339Sql(`${o}.taken_at`)} as taken_at`;

/** The market of an instrument. Decimals are strings. */
export interface Market {
  readonly referencePrice: string;
  /** Prices are multiples of it. */
  readonly tick?: string;
  /** Quantities are multiples of it. */
  readonly step?: string;
}

/** All fills of an order `o` as JSON. */
const fillsSql = (table: string, o: string) =>
  `coalesce((select json_agg(${fillJson("f")} order by f.n) from ${table} f where f.order_position = ${o}.position), '[]')`;

export const fillJson = (
  f: string,
): string => `json_build_object('trade_id', 'paper-' || ${f}.order_position || '-' || ${f}.n,
  'qty', trim_scale(${f}.qty)::text, 'price', trim_scale(${f}.price)::text, 'filled_at', ${rfc3339Sql(`${f}.filled_at`)})`;

export interface PriceSql {
  readonly referencePrice: string;
  readonly instrument: string;
  /** Decides where the mid price is, with the seed. */
  readonly moment: string;
}

/**
 * The mid price is within 10 basis points of the reference price; where, depends on the seed and the order, so that a run can be
 * repeated. An instrument without a reference price has a constant one from 100 to 999.
 */
export const midPrice = ({ referencePrice, instrument, moment }: PriceSql): string =>
  `coalesce(${referencePrice}::numeric * (1 + hashtextextended(${moment}, 0) % 1001 * 0.000001),
            100 + abs(hashtext(${instrument})::bigint) % 900)`;

/** Buyers pay 5 basis points more than the mid price, sellers get 5 less; rounded to the tick in the order's favour. */
export const marketPrice = `case p.side when 'BUY' then coalesce(floor(p.mid * 1.0005 / p.tick) * p.tick, p.mid * 1.0005)
                          else coalesce(ceil(p.mid * 0.9995 / p.tick) * p.tick, p.mid * 0.9995) end`;

export async function selectClock(db: Db): Promise<Date> {
  const { rows } = await db.query<{ at: Date }>("select clock_timestamp() as at");
  return (rows[0] as { at: Date }).at;
}

export interface NewOrder {
  readonly order: BrokerOrder;
  readonly timestamp: Date;
  readonly windowMs: number;
  readonly reject: boolean;
  readonly market: Market | undefined;
  readonly seed: number;
}

/** `isNew` is false if the order existed; both are undefined if the timestamp is outside the window. */
export interface InsertResult {
  readonly isNew: boolean | undefined;
  readonly order: WireOrder | undefined;
}

/** The statement that takes the order checks the window, so a later request is never taken. */
const insertSql = `
with sent as (
  select $1::text as client_order_id, $2::text as instrument, $3::text as side, $4::numeric as qty, $5::numeric as price,
         $6::text as time_in_force, ${midPrice({ referencePrice: "$11", instrument: "$2::text", moment: "$13::text || ' ' || $1::text" })} as mid, $12::numeric as tick
),
priced as (select p.*, trim_scale(${marketPrice}) as market from sent p),
filled as (
  select p.*, case when $9::boolean or p.price is null and abs(p.market - p.mid) * 10000 > $10::int * p.mid then 'rejected'
                   when p.price is null or case p.side when 'BUY' then p.price >= p.market else p.price <= p.market end then 'filled'
                   when p.time_in_force = 'GTC' then 'open' else 'expired' end as status
    from priced p
),
inserted as (
  insert into paper_broker.orders (client_order_id, instrument, side, qty, filled_qty, limit_price, price, status, why)
  select f.client_order_id, f.instrument, f.side, f.qty, case f.status when 'filled' then f.qty else 0 end, f.price,
         case f.status when 'filled' then f.market end, f.status,
         case when f.status <> 'rejected' then null when $9::boolean then 'a fault rejects this order'
              else 'the slippage would exceed max_slippage_bps' end
    from filled f
   where clock_timestamp() <= $7::timestamptz + $8::float8 * interval '1 millisecond'
     and clock_timestamp() >= $7::timestamptz - $8::float8 * interval '1 millisecond'
  on conflict (client_order_id) do nothing
  returning *
),
new_fills as (
  insert into paper_broker.fills (order_position, n, qty, price, filled_at)
  select i.position, 1, i.filled_qty, i.price, i.taken_at from inserted i where i.filled_qty > 0
  returning *
)
select true as is_new, ${orderColumns("i")}, ${fillsSql("new_fills", "i")} as fills from inserted i
union all
select false, ${orderColumns("o")}, ${fillsSql("paper_broker.fills", "o")} from paper_broker.orders o
 where o.client_order_id = $1 and not exists (select from inserted)`;

export async function insertOrder(db: Db, request: NewOrder): Promise<InsertResult> {
  const { order, timestamp, windowMs, reject, market, seed } = request;
  const { clientOrderId, instrument, side, qty, price, timeInForce, maxSlippageBps } = order;
  const fields = [clientOrderId, instrument, side, qty, price, timeInForce];
  const prices = [market?.referencePrice ?? null, market?.tick ?? null, seed];
  const values = [...fields, timestamp.toISOString(), windowMs, reject, maxSlippageBps, ...prices];
  const { rows } = await db.query<WireOrder & { is_new: boolean }>({ name: "paper insert", text: insertSql, values });
  const [row] = rows;
  // Neither inserted nor visible: it was late, or a concurrent request inserted it, which a second read shows.
  if (!row) {
    const { order: existing } = await findOrder(db, clientOrderId);
    return { isNew: existing && false, order: existing };
  }
  const { is_new: isNew, ...stored } = row;
  return { isNew, order: stored };
}

/** The order, if there is one, and the broker's time before it was read. */
export async function findOrder(db: Db, clientOrderId: string): Promise<{ at: Date; order: WireOrder | undefined }> {
  const { rows } = await db.query<WireOrder & { at: Date; client_order_id: string | null }>({
    name: "paper find",
    text: `select n.at, ${orderColumns("o")}, ${fillsSql("paper_broker.fills", "o")} as fills
             from (select statement_timestamp() as at) n left join paper_broker.orders o on o.client_order_id = $1`,
    values: [clientOrderId],
  });
  const [{ at, ...order }] = rows as [WireOrder & { at: Date; client_order_id: string | null }];
  return { at, order: order.client_order_id === null ? undefined : order };
}

export async function cancelOrder(db: Db, clientOrderId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `update paper_broker.orders set status = 'cancelled' where client_order_id = $1 and status = 'open'`,
    [clientOrderId],
  );
  return rowCount === 1;
}

export interface Page {
  readonly since: Date;
  readonly after: bigint;
  readonly limit: number;
}

export async function listOrders(db: Db, { since, after, limit }: Page): Promise<(WireOrder & { position: bigint })[]> {
  const { rows } = await db.query<WireOrder & { position: bigint }>(
    `select ${orderColumns("o")}, o.position from paper_broker.orders o
      where o.taken_at >= $1 and o.position > $2 and o.status <> 'rejected' order by o.position limit $3`,
    [since.toISOString(), after, limit],
  );
  return rows;
}

/** False before the first start of a sender. */
export async function hasSchema(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(`select to_regclass('paper_broker.orders') is not null as found`);
  return rows[0]?.found === true;
}
