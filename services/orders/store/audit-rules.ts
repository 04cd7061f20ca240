/**
 * Rules between orders, their ledger, their history, their fills, and the findings of the last reconciliation with the broker.
 */
import { type AuditSpec, eventExists } from "@todoke/kernel/audit";
import { ledgerStatusSql } from "./response.ts";

export const ordersAudit: AuditSpec = {
  checked: {
    orders: "outbox_orders",
    "ledger entries": "idempo_ledger",
    steps: "order_status_history",
    fills: "order_fills",
  },
  rules: {
    "every ledger entry says what its order says": `
    select o.id::text as about, format('order %s is %s, its ledger entry says %s', o.client_order_id, o.status, l.status) as detail
      from idempo_ledger l join outbox_orders o on o.id = l.order_row_id
     where l.status <> ${ledgerStatusSql("o")} or l.request_digest <> o.request_digest`,
    "every order that has not ended has its ledger entry": `
    select o.id::text as about, format('order %s is %s', o.client_order_id, o.status) as detail
      from outbox_orders o
     where o.done_at is null and not exists (select from idempo_ledger l where l.order_row_id = o.id)`,
    "the last step of every order is its state": `
    select o.id::text as about, format('order %s is %s, the last step %s', o.client_order_id, o.status, coalesce(h.to_status, 'is missing')) as detail
      from outbox_orders o
      left join (select distinct on (order_row_id) order_row_id, to_status from order_status_history order by order_row_id, place desc) h
        on h.order_row_id = o.id
     where h.to_status is distinct from o.status`,
    "each step of an order continues from the one before": `
    select order_row_id::text as about, format('step %s from %s after %s', place, from_status, before) as detail
      from (select order_row_id, place, from_status, lag(to_status) over (partition by order_row_id order by place) as before
              from order_status_history) h
     where from_status is distinct from before`,
    "fills add up to what is filled": `
    select o.id::text as about, format('order %s: filled %s for %s, fills %s for %s', o.client_order_id, o.filled_qty, o.filled_notional,
           coalesce(f.qty, 0), coalesce(f.notional, 0)) as detail
      from outbox_orders o
      left join (select order_row_id, sum(qty) as qty, sum(qty * price) as notional from order_fills group by order_row_id) f on f.order_row_id = o.id
     where o.filled_qty <> coalesce(f.qty, 0) or o.filled_notional <> coalesce(f.notional, 0)`,
    "open quantities of positions are those of the open orders": `
    select adapter || ' ' || instrument as about, format('open %s/%s, orders %s/%s', p.buy, p.sell, coalesce(o.buy, 0), coalesce(o.sell, 0)) as detail
      from (select adapter, instrument, sum(open_buy_qty) as buy, sum(open_sell_qty) as sell from positions group by adapter, instrument) p
      full join (select adapter, instrument, sum(open_qty(o)) filter (where side = 'BUY') as buy, sum(open_qty(o)) filter (where side = 'SELL') as sell
                   from outbox_orders o group by adapter, instrument) o using (adapter, instrument)
     where coalesce(p.buy, 0) <> coalesce(o.buy, 0) or coalesce(p.sell, 0) <> coalesce(o.sell, 0)`,
    "every order has its events": `
    select r.id::text as about, format('order %s was accepted at %s', r.client_order_id, r.created_at) as detail
      from outbox_orders r
     where r.created_at > (select since from kept) and not ${eventExists("o.aggregate_key = r.client_order_id")}`,
    "the broker's books agree": `
    select adapter as about, format('%s mismatches in the reconciliation of %s: %s', mismatches, last_ok_at, left(details::text, 200)) as detail
      from reconciliations where mismatches > 0`,
  },
};
