/** The SQL of the paper broker: its orders and its simple prices. */
import { type Db, rfc3339Sql } from "@todoke/kernel/db";
import type { WireOrder } from "../http/protocol.ts";
import type { BrokerOrder } from "../index.ts";

const columns = (o: string) => `
  ${o}.client_order_id, 'paper-' || ${o}.position as broker_order_id, ${o}.instrument, ${o}.side, ${o}.qty::text as qty,
  ${o}.filled_qty::text as filled_qty, ${o}.price::text as price, ${o}.status, ${o}.why,
  ${rfc3339Sql(`${o}.taken_at`)} as taken_at`;

/** Every instrument has a constant mid price from 100 to 999. Buyers pay 5 basis points more, sellers get 5 less. */
const midPrice = (o: string) => `(100 + abs(hashtext(${o}.instrument)::bigint) % 900)`;
const marketPrice = (o: string) => `${midPrice(o)} * case ${o}.side when 'BUY' then 1.0005 else 0.9995 end`;

export async function selectClock(db: Db): Promise<Date> {
  const { rows } = await db.query<{ at: Date }>("select clock_timestamp() as at");
  return (rows[0] as { at: Date }).at;
}

export interface NewOrder {
  readonly order: BrokerOrder;
  readonly timestamp: Date;
  readonly windowMs: number;
  readonly reject: boolean;
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
         $6::text as time_in_force
),
priced as (
  select s.*, ${marketPrice("s")} as market, abs(${marketPrice("s")} - ${midPrice("s")}) * 10000 / ${midPrice("s")} as slippage_bps
    from sent s
),
filled as (
  select p.*, case when $9::boolean or p.price is null and p.slippage_bps > $10::int then 'rejected'
                   when p.price is null or case p.side when 'BUY' then p.price >= p.market else p.price <= p.market end then 'filled'
                   when p.time_in_force = 'GTC' then 'open' else 'expired' end as status
    from priced p
),
inserted as (
  insert into paper_broker.orders (client_order_id, instrument, side, qty, filled_qty, price, status, why)
  select f.client_order_id, f.instrument, f.side, f.qty, case f.status when 'filled' then f.qty else 0 end,
         case f.status when 'filled' then f.market end, f.status,
         case when f.status <> 'rejected' then null when $9::boolean then 'a fault rejects this order'
              else 'the slippage would exceed max_slippage_bps' end
    from filled f
   where clock_timestamp() <= $7::timestamptz + $8::float8 * interval '1 millisecond'
     and clock_timestamp() >= $7::timestamptz - $8::float8 * interval '1 millisecond'
  on conflict (client_order_id) do nothing
  returning *
)
select true as is_new, ${columns("i")} from inserted i
union all
select false, ${columns("o")} from paper_broker.orders o
 where o.client_order_id = $1 and not exists (select from inserted)`;

export async function insertOrder(db: Db, { order, timestamp, windowMs, reject }: NewOrder): Promise<InsertResult> {
  const { clientOrderId, instrument, side, qty, price, timeInForce, maxSlippageBps } = order;
  const fields = [clientOrderId, instrument, side, qty, price, timeInForce];
  const values = [...fields, timestamp.toISOString(), windowMs, reject, maxSlippageBps];
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
    text: `select n.at, ${columns("o")}
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
    `select ${columns("o")}, o.position from paper_broker.orders o
      where o.taken_at >= $1 and o.position > $2 and o.status <> 'rejected' order by o.position limit $3`,
    [since.toISOString(), after, limit],
  );
  return rows;
}
