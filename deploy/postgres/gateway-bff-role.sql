-- Rights of todoke_gateway_bff, the role as which the service gateway-bff runs. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema gateway_bff from todoke_gateway_bff;
grant usage on schema gateway_bff to todoke_gateway_bff;
grant select on all tables in schema gateway_bff to todoke_gateway_bff;

-- Sessions, login attempts, logouts of the provider and rate limits: all end by age or by request.
grant insert, update, delete
  on gateway_bff.sessions, gateway_bff.one_time, gateway_bff.provider_logouts, gateway_bff.rate_limits
  to todoke_gateway_bff;

-- The last known state of users.
grant insert, update on gateway_bff.known_users to todoke_gateway_bff;

-- Inbox: events that were processed, attempts, dead letters; removed by age.
grant insert, update, delete
  on gateway_bff.processed_events, gateway_bff.inbox_attempts, gateway_bff.inbox_dlq
  to todoke_gateway_bff;

-- Append-only.
grant insert on gateway_bff.redrives to todoke_gateway_bff;

-- Keys of the acts of staff, removed by age.
grant insert, update, delete on gateway_bff.idempotency_keys to todoke_gateway_bff;

-- Staff: acts are append-only; batches of dead letters and samples are removed by age.
grant insert on gateway_bff.staff_acts to todoke_gateway_bff;
grant insert, update, delete on gateway_bff.dead_letter_batches, gateway_bff.console_samples to todoke_gateway_bff;

-- Of a discarded row the copy is removed by age; who discarded it and why stays.
grant update (discarded, copy_removed_at) on gateway_bff.redrives to todoke_gateway_bff;

-- API keys are created and revoked, never changed: no key gets another holder, other scopes or a later end.
grant insert, update (last_used_at, revoked_at, revoked_by, revoked_reason) on gateway_bff.api_keys to todoke_gateway_bff;

-- The last audit of the tables.
grant insert, update on gateway_bff.audits to todoke_gateway_bff;
commit;
