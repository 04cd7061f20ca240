-- Rights of todoke_notification, the role as which the service notification runs. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema notification from todoke_notification;
grant usage on schema notification to todoke_notification;
grant select on all tables in schema notification to todoke_notification;

-- Notifications and those that could not be sent; removed by age.
grant insert, update, delete on notification.notifications, notification.notification_dlq to todoke_notification;

-- Inbox: events that were processed, attempts, dead letters; removed by age.
grant insert, update, delete
  on notification.processed_events, notification.inbox_attempts, notification.inbox_dlq
  to todoke_notification;

-- Append-only.
grant insert on notification.redrives to todoke_notification;

-- Keys of the acts of staff, removed by age.
grant insert, update, delete on notification.idempotency_keys to todoke_notification;

-- Staff: acts are append-only; batches of dead letters and samples are removed by age.
grant insert on notification.staff_acts to todoke_notification;
grant insert, update, delete on notification.dead_letter_batches, notification.console_samples to todoke_notification;

-- Of a discarded row the copy is removed by age; who discarded it and why stays.
grant update (discarded, copy_removed_at) on notification.redrives to todoke_notification;

-- API keys are created and revoked, never changed: no key gets another holder, other scopes or a later end.
grant insert, update (last_used_at, revoked_at, revoked_by, revoked_reason) on notification.api_keys to todoke_notification;

-- The last audit of the tables.
grant insert, update on notification.audits to todoke_notification;
commit;
