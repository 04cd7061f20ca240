-- A database with two roles for every service: an owner that migrates, and a role that only serves and owns nothing. Run it
-- once, as a superuser or a role that may create roles and databases; leave out the services that you do not run.
-- The roles have no password yet: docs/guides/one-database-per-service.md continues from here.

create role todoke_account_owner login;
create role todoke_account login;
create database todoke_account owner todoke_account_owner;
revoke all on database todoke_account from public;
grant connect on database todoke_account to todoke_account;

create role todoke_entitlement_owner login;
create role todoke_entitlement login;
create database todoke_entitlement owner todoke_entitlement_owner;
revoke all on database todoke_entitlement from public;
grant connect on database todoke_entitlement to todoke_entitlement;

create role todoke_gateway_bff_owner login;
create role todoke_gateway_bff login;
create database todoke_gateway_bff owner todoke_gateway_bff_owner;
revoke all on database todoke_gateway_bff from public;
grant connect on database todoke_gateway_bff to todoke_gateway_bff;

create role todoke_matchmaking_owner login;
create role todoke_matchmaking login;
create database todoke_matchmaking owner todoke_matchmaking_owner;
revoke all on database todoke_matchmaking from public;
grant connect on database todoke_matchmaking to todoke_matchmaking;

create role todoke_notification_owner login;
create role todoke_notification login;
create database todoke_notification owner todoke_notification_owner;
revoke all on database todoke_notification from public;
grant connect on database todoke_notification to todoke_notification;

create role todoke_orders_owner login;
create role todoke_orders login;
create database todoke_orders owner todoke_orders_owner;
revoke all on database todoke_orders from public;
grant connect on database todoke_orders to todoke_orders;

create role todoke_points_owner login;
create role todoke_points login;
create database todoke_points owner todoke_points_owner;
revoke all on database todoke_points from public;
grant connect on database todoke_points to todoke_points;
