-- Rights of todoke_entitlement, the role as which the service entitlement runs. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema entitlement from todoke_entitlement;
grant usage on schema entitlement to todoke_entitlement;
grant select on all tables in schema entitlement to todoke_entitlement;

-- What users own; it ends by a state, not by a deletion.
grant insert, update on entitlement.entitlements to todoke_entitlement;

-- Outbox and idempotency keys: written by commands, removed by age.
grant insert, update, delete on entitlement.outbox_events, entitlement.idempotency_keys to todoke_entitlement;

-- Append-only. Partitions of the audit are created and dropped by two functions, which have the rights of the owner
-- and bounds of their own (docs/adr/0052).
grant insert on entitlement.entitlement_audit, entitlement.redrives to todoke_entitlement;
grant execute
  on function entitlement.make_entitlement_audit_months, entitlement.drop_entitlement_audit_months
  to todoke_entitlement;

-- Staff: acts are append-only; batches of dead letters and samples are removed by age.
grant insert on entitlement.staff_acts to todoke_entitlement;
grant insert, update, delete on entitlement.dead_letter_batches, entitlement.console_samples to todoke_entitlement;

-- Of a discarded row the copy is removed by age; who discarded it and why stays.
grant update (discarded, copy_removed_at) on entitlement.redrives to todoke_entitlement;

-- API keys are created and revoked, never changed: no key gets another holder, other scopes or a later end.
grant insert, update (last_used_at, revoked_at, revoked_by, revoked_reason) on entitlement.api_keys to todoke_entitlement;

-- The last audit of the tables.
grant insert, update on entitlement.audits to todoke_entitlement;
commit;
