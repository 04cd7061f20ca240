-- The price at which an open order counts: its limit price, or the reference price of its instrument when it was accepted.
alter table outbox_orders add column if not exists exposure_price numeric;

-- What was bought and sold of an instrument, and what open orders may still buy and sell. The sums are spread over sixteen rows, of
-- which a connection changes its own: one row for an instrument would let all its orders wait for each other's commits.
create table positions (
  adapter       text not null,
  instrument    text not null,
  stripe        int not null,
  position      numeric not null default 0,                -- bought minus sold, by the fills
  open_buy_qty  numeric not null default 0,
  open_sell_qty numeric not null default 0,
  open_notional numeric not null default 0,
  primary key (adapter, instrument, stripe)
) with (fillfactor = 50);

-- What the broker may still fill of an order, as far as we know.
create function open_qty(o outbox_orders) returns numeric language sql immutable as $$
  select case when o.status in ('pending', 'sending', 'failed', 'unknown') or o.execution = 'open' then o.qty - o.filled_qty else 0 end
$$;

create function add_new_orders_to_positions() returns trigger language plpgsql as $$
begin
  insert into positions as p (adapter, instrument, stripe, open_buy_qty, open_sell_qty, open_notional)
  select n.adapter, n.instrument, pg_backend_pid() % 16, coalesce(sum(n.qty) filter (where n.side = 'BUY'), 0),
         coalesce(sum(n.qty) filter (where n.side = 'SELL'), 0), sum(n.qty * coalesce(n.exposure_price, n.price, 0))
    from new_orders n group by n.adapter, n.instrument order by n.adapter, n.instrument
  on conflict (adapter, instrument, stripe) do update
     set open_buy_qty = p.open_buy_qty + excluded.open_buy_qty, open_sell_qty = p.open_sell_qty + excluded.open_sell_qty,
         open_notional = p.open_notional + excluded.open_notional;
  return null;
end $$;

create function add_order_change_to_positions() returns trigger language plpgsql as $$
declare
  filled numeric := new.filled_qty - old.filled_qty;
  opened numeric := open_qty(new) - open_qty(old);
begin
  if filled = 0 and opened = 0 then return null; end if;
  insert into positions as p (adapter, instrument, stripe, position, open_buy_qty, open_sell_qty, open_notional)
  values (new.adapter, new.instrument, pg_backend_pid() % 16, case new.side when 'BUY' then filled else -filled end,
          case new.side when 'BUY' then opened else 0 end, case new.side when 'SELL' then opened else 0 end,
          opened * coalesce(new.exposure_price, new.price, 0))
  on conflict (adapter, instrument, stripe) do update
     set position = p.position + excluded.position, open_buy_qty = p.open_buy_qty + excluded.open_buy_qty,
         open_sell_qty = p.open_sell_qty + excluded.open_sell_qty, open_notional = p.open_notional + excluded.open_notional;
  return null;
end $$;

-- Triggers, so that no statement can forget it: also not one of the build before.
create trigger new_orders_are_in_positions after insert on outbox_orders referencing new table as new_orders
  for each statement execute function add_new_orders_to_positions();
create trigger order_changes_are_in_positions after update on outbox_orders for each row
  when (old.filled_qty is distinct from new.filled_qty or old.execution is distinct from new.execution
        or old.status is distinct from new.status and new.status = 'aborted')
  execute function add_order_change_to_positions();

-- Orders that are open now, by the index before. In one transaction with the triggers, so that no order is missed or counted twice.
-- Positions count fills from here on: those before were not recorded.
insert into positions (adapter, instrument, stripe, open_buy_qty, open_sell_qty, open_notional)
select o.adapter, o.instrument, 0, coalesce(sum(open_qty(o)) filter (where o.side = 'BUY'), 0),
       coalesce(sum(open_qty(o)) filter (where o.side = 'SELL'), 0), sum(open_qty(o) * coalesce(o.price, 0))
  from outbox_orders o
 where o.status in ('pending', 'sending', 'failed', 'unknown') or o.execution = 'open'
 group by o.adapter, o.instrument;
