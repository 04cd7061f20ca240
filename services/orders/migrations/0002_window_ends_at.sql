-- Until when the broker may take the last request that is in doubt: by the database's clock, from when the request left. Null
-- where the broker promises no end, and for what was sent before this column was there. A person who says that an order was
-- not taken has to wait for it.
alter table outbox_orders add column if not exists window_ends_at timestamptz;
