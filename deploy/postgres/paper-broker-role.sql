-- Rights of todoke_orders on the simulated broker (ORDERS_BROKER=paper), which has a schema beside that of the orders. Run
-- this as the owner of the tables, after orders-role.sql; it can be run again at any time. Not needed with a real broker.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema paper_broker from todoke_orders;
grant usage on schema paper_broker to todoke_orders;
grant select on all tables in schema paper_broker to todoke_orders;

-- The simulated broker takes orders, cancels them and fills them.
grant insert, update on paper_broker.orders to todoke_orders;
grant insert on paper_broker.fills to todoke_orders;
commit;
