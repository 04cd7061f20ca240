-- Rights of todoke_account, the role as which the service account runs. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema account from todoke_account;
grant usage on schema account to todoke_account;
grant select on all tables in schema account to todoke_account;

-- Users are marked as deleted, never removed.
grant insert, update on account.users to todoke_account;

-- A deleted user loses identities and roles.
grant insert, update, delete on account.identities to todoke_account;
grant insert, delete on account.account_roles to todoke_account;

-- Outbox and idempotency keys: written by commands, removed by age.
grant insert, update, delete on account.outbox_events, account.idempotency_keys to todoke_account;

-- Append-only. Of an entry only the values can change: the personal data of a deleted user is removed from them.
grant insert on account.audit_logs, account.redrives to todoke_account;
grant update (before, after) on account.audit_logs to todoke_account;

-- Staff: acts are append-only; batches of dead letters and samples are removed by age.
grant insert on account.staff_acts to todoke_account;
grant insert, update, delete on account.dead_letter_batches, account.console_samples to todoke_account;

-- Of a discarded row the copy is removed by age; who discarded it and why stays.
grant update (discarded, copy_removed_at) on account.redrives to todoke_account;

-- API keys are created and revoked, never changed: no key gets another holder, other scopes or a later end.
grant insert, update (last_used_at, revoked_at, revoked_by, revoked_reason) on account.api_keys to todoke_account;

-- The last audit of the tables.
grant insert, update on account.audits to todoke_account;
commit;
