-- Rights of todoke_matchmaking, the role as which the service matchmaking runs. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema matchmaking from todoke_matchmaking;
grant usage on schema matchmaking to todoke_matchmaking;
grant select on all tables in schema matchmaking to todoke_matchmaking;

-- The queue, if it is in PostgreSQL.
grant insert, update, delete on matchmaking.tickets to todoke_matchmaking;
grant insert, update on matchmaking.forming_turns, matchmaking.modes, matchmaking.user_versions to todoke_matchmaking;

-- Results are never changed, but removed by age. Removing locks rows, and a row lock needs the right to update at least
-- one column: here one that nothing is decided by.
grant insert, delete on matchmaking.matches, matchmaking.ticket_ends, matchmaking.damaged_tickets to todoke_matchmaking;
grant update (recorded_at) on matchmaking.matches to todoke_matchmaking;
grant update (waited) on matchmaking.ticket_ends to todoke_matchmaking;
grant update (why) on matchmaking.damaged_tickets to todoke_matchmaking;

-- Outbox and idempotency keys: written by commands, removed by age.
grant insert, update, delete on matchmaking.outbox_events, matchmaking.idempotency_keys to todoke_matchmaking;

-- Inbox: events that were processed, attempts, dead letters; removed by age.
grant insert, update, delete
  on matchmaking.processed_events, matchmaking.inbox_attempts, matchmaking.inbox_dlq
  to todoke_matchmaking;

-- Append-only.
grant insert on matchmaking.redrives to todoke_matchmaking;

-- Staff: acts are append-only; batches of dead letters and samples are removed by age.
grant insert on matchmaking.staff_acts to todoke_matchmaking;
grant insert, update, delete on matchmaking.dead_letter_batches, matchmaking.console_samples to todoke_matchmaking;

-- Of a discarded row the copy is removed by age; who discarded it and why stays.
grant update (discarded, copy_removed_at) on matchmaking.redrives to todoke_matchmaking;

-- API keys are created and revoked, never changed: no key gets another holder, other scopes or a later end.
grant insert, update (last_used_at, revoked_at, revoked_by, revoked_reason) on matchmaking.api_keys to todoke_matchmaking;

-- The last audit of the tables.
grant insert, update on matchmaking.audits to todoke_matchmaking;
commit;
