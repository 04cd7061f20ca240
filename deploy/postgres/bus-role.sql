-- Rights of todoke_bus, the role of EVENT_BUS_URL if the bus is in PostgreSQL. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema todoke_bus from todoke_bus;
grant usage on schema todoke_bus to todoke_bus;
grant select on all tables in schema todoke_bus to todoke_bus;

-- Messages are never changed, but removed by age. Removing locks rows, and a row lock needs the right to update at least
-- one column: here one that nothing is decided by.
grant insert, delete on todoke_bus.bus_messages to todoke_bus;
grant update (headers) on todoke_bus.bus_messages to todoke_bus;

-- Deliveries are claimed, settled and removed by age.
grant insert, update, delete on todoke_bus.bus_deliveries to todoke_bus;

-- A new consumer joins, with both tables locked for a moment. The lock needs the right to update or delete.
grant insert, update, delete on todoke_bus.bus_joins to todoke_bus;
grant insert, update on todoke_bus.bus_subscriptions to todoke_bus;
commit;
