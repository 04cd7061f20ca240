-- What the service points may do in its database when it connects as a role of its own, which owns nothing there: it books
-- points, and cannot change or remove what was booked, nor take away the trigger that refuses it. Run it as the owner of
-- the tables, after every `todoke migrate`; twice is once. services/points/store/own-role.test.ts works under it.
begin;
grant usage on schema points to todoke_points;
grant select, insert, update, delete on all tables in schema points to todoke_points;
revoke update, delete, truncate on points.point_transactions from todoke_points;
revoke insert, update, delete on points.schema_migrations from todoke_points;
commit;
