-- What became of an order at the broker after it was taken. `status` stays succeeded: the broker has it. `execution` says whether
-- the order is still open there or how it ended; null: not taken, or taken before this column existed.
alter table outbox_orders
  add column if not exists execution text,
  add column if not exists filled_qty numeric not null default 0,      -- the sum of order_fills.qty
  add column if not exists filled_notional numeric not null default 0; -- the sum of qty times price, for the average price
alter table outbox_orders
  add constraint order_execution_is_known check (execution in ('open', 'filled', 'cancelled', 'expired')) not valid,
  add constraint order_execution_iff_taken check (execution is null or status = 'succeeded') not valid,
  -- The broker cannot have filled more than was ordered: such a fill is an error, and is not recorded.
  add constraint order_is_not_overfilled check (filled_qty <= qty) not valid,
  add constraint order_filled_is_complete check (execution <> 'filled' or filled_qty = qty) not valid;

-- Every fill, once: the broker may report it many times.
create table order_fills (
  order_row_id bigint not null references outbox_orders on delete cascade,
  trade_id     text not null,                              -- the broker's ID of the trade
  version      int not null,                               -- of the order after it, and of its event
  qty          numeric not null,
  price        numeric not null,
  filled_at    timestamptz not null,                       -- by the broker's clock
  recorded_at  timestamptz not null default clock_timestamp(),
  primary key (order_row_id, trade_id),
  constraint fill_version_is_unique unique (order_row_id, version), -- also the list of an order's fills
  constraint fill_qty_is_positive check (qty > 0),
  constraint fill_price_is_positive check (price > 0)
);

-- Orders whose fills a worker asks the broker for, until the order ends there.
create table followed_orders (
  order_row_id  bigint primary key references outbox_orders on delete cascade,
  adapter       text not null,                             -- the order's
  status        text not null default 'open',
  position      text,                                      -- of the last fill that the broker returned; null: from the first
  checks        int not null default 0,                    -- without a new fill
  attempt_count int not null default 0,
  next_retry_at timestamptz not null default now(),
  lease_epoch   bigint not null default 0,
  locked_by     text,
  locked_at     timestamptz,
  lease_until   timestamptz,
  last_error    text,
  done_at       timestamptz,
  constraint followed_status_is_known check (status in ('open', 'ended'))
) with (fillfactor = 50);

-- claim: what is due, and what dead workers held
create index followed_orders_open on followed_orders (adapter, next_retry_at) where status = 'open';

-- A statement that records fills together with the transition raises the version once for each fill; the transition itself is the
-- first of these versions. An order that is taken and has not ended at the broker is open there.
create or replace function take_order_step() returns trigger language plpgsql as $$
begin
  if not (old.status || '>' || new.status) = any (array[
    'pending>sending', 'pending>aborted',
    'sending>sending', 'sending>succeeded', 'sending>failed', 'sending>aborted', 'sending>unknown', 'sending>pending',
    'failed>pending', 'failed>aborted',
    'unknown>sending', 'unknown>succeeded', 'unknown>aborted', 'unknown>pending'])
  then
    raise exception 'an order cannot go from % to %', old.status, new.status using errcode = 'restrict_violation';
  end if;
  new.version := new.version + 1;
  new.updated_at := clock_timestamp();
  if new.status = 'succeeded' then new.execution := coalesce(new.execution, 'open'); end if;
  return new;
end $$;

create or replace function write_order_step() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into order_status_history (order_row_id, place, from_status, to_status, attempt, at, by)
    values (new.id, new.version, null, new.status, new.attempts, new.created_at, new.changed_by);
  else
    -- The attempt is the one that this step belongs to: an attempt given back was still made.
    insert into order_status_history (order_row_id, place, from_status, to_status, attempt, code, detail, at, by)
    values (new.id, old.version + 1, old.status, new.status, greatest(old.attempts, new.attempts),
            case when new.status in ('failed', 'aborted', 'unknown') then new.last_error_code end,
            case when new.status in ('failed', 'aborted', 'unknown') then new.last_error_msg end,
            new.updated_at,
            case when new.changed_by is distinct from old.changed_by then new.changed_by
                 when old.status = 'failed' and new.status = 'pending' then 'backoff'
                 else coalesce(new.locked_by, old.locked_by, new.changed_by) end);
    if new.status = 'succeeded' and new.execution = 'open' then
      insert into followed_orders (order_row_id, adapter) values (new.id, new.adapter);
    end if;
  end if;
  return null;
end $$;

-- A fill raises the version, and is no transition.
drop trigger order_steps_are_written on outbox_orders;
create trigger order_steps_are_written after update on outbox_orders for each row
  when (old.version is distinct from new.version and (old.status is distinct from new.status or new.status = 'sending'))
  execute function write_order_step();
