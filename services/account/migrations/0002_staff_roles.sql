-- People who work with the product: VIEWER reads, OPERATOR acts, ADMIN may do everything. The rows that exist satisfy the wider
-- check, so it is not checked against them under the lock.
alter table account_roles
  drop constraint account_role_is_known,
  add constraint account_role_is_known check (role in ('USER', 'VIEWER', 'OPERATOR', 'ADMIN')) not valid;
alter table account_roles validate constraint account_role_is_known;
