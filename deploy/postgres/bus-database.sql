-- A database for the bus, if it is in PostgreSQL and every service has a database of its own. Run it once, as in databases.sql.

create role todoke_bus_owner login;
create role todoke_bus login;
create database todoke_bus owner todoke_bus_owner;
revoke all on database todoke_bus from public;
grant connect on database todoke_bus to todoke_bus;
