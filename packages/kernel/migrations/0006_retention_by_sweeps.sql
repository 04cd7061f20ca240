-- Retention reads these tables page by page (kernel/retention), so no command has to write an index entry for it.
drop index if exists outbox_events_published;
drop index if exists idempotency_keys_expiry;
drop index if exists processed_events_age;
