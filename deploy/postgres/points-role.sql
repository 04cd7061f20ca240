-- Privileges of the service points when it connects with its own database role, which owns no table: it can post point
-- transactions, and can neither change nor delete them, nor drop the trigger that forbids it. Run this as the owner of the
-- tables after every `todoke migrate`; it is idempotent. services/points/store/own-role.test.ts tests with it.
begin;
grant usage on schema points to todoke_points;
grant select, insert, update, delete on all tables in schema points to todoke_points;
revoke update, delete, truncate on points.point_transactions from todoke_points;
revoke insert, update, delete on points.schema_migrations from todoke_points;
commit;
