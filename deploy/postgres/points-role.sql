-- Rights of todoke_points, the role as which the service points runs. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema points from todoke_points;
grant usage on schema points to todoke_points;
grant select on all tables in schema points to todoke_points;

-- The state that is derived from the transactions.
grant insert, update
  on points.point_root, points.point_lots, points.point_lot_uses, points.point_holds
  to todoke_points;
grant insert, update on points.point_reservations, points.point_schedules to todoke_points;
grant insert, delete on points.point_schedule_users to todoke_points;

-- Outbox and idempotency keys: written by commands, removed by age.
grant insert, update, delete on points.outbox_events, points.idempotency_keys to todoke_points;

-- Inbox: events that were processed, attempts, dead letters; removed by age.
grant insert, update, delete on points.processed_events, points.inbox_attempts, points.inbox_dlq to todoke_points;

-- Append-only: posted transactions cannot be changed or deleted, and the trigger that forbids it cannot be dropped.
grant insert on points.point_transactions, points.redrives to todoke_points;

-- Staff: acts are append-only; batches of dead letters and samples are removed by age.
grant insert on points.staff_acts to todoke_points;
grant insert, update, delete on points.dead_letter_batches, points.console_samples to todoke_points;

-- Of a discarded row the copy is removed by age; who discarded it and why stays.
grant update (discarded, copy_removed_at) on points.redrives to todoke_points;

-- API keys are created and revoked, never changed: no key gets another holder, other scopes or a later end.
grant insert, update (last_used_at, revoked_at, revoked_by, revoked_reason) on points.api_keys to todoke_points;

-- The last audit of the tables.
grant insert, update on points.audits to todoke_points;
commit;
