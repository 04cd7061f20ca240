-- Orders that were open at the broker before there were fills are followed from here on. A file of its own: the one before locks the
-- table, and this one reads all succeeded orders.
update outbox_orders set execution = 'open' where status = 'succeeded' and broker_result ->> 'status' = 'open';
insert into followed_orders (order_row_id, adapter) select id, adapter from outbox_orders where execution = 'open'
on conflict do nothing;
