-- The player for whom the order was placed; null if the request names none, and for orders placed before this column existed.
-- Notifications go to this user. No rewrite: the column has no default.
alter table outbox_orders add column if not exists user_id text;
