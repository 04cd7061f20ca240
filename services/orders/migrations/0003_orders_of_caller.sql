-- migrate: no transaction
-- the list of one caller's orders, newest first
create index concurrently if not exists outbox_orders_of_caller on outbox_orders (caller, created_at, id);
