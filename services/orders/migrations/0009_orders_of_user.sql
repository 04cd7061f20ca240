-- staff: the orders of one player, newest first
create index if not exists outbox_orders_user on outbox_orders (user_id, created_at, id) where user_id is not null;
