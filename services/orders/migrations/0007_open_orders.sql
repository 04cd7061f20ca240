-- migrate: no transaction
-- cancel-all: orders that the broker may still fill, oldest first
create index concurrently if not exists outbox_orders_open on outbox_orders (id) where status in ('pending', 'sending', 'failed', 'unknown') or execution = 'open';
