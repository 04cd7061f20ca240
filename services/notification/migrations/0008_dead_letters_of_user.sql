-- migrate: no transaction
-- why: the dead letters of a user. A row is written when a notification is dead-lettered, so sending one costs nothing more.
create index concurrently if not exists notification_dlq_of_user on notification_dlq (user_id, dlq_id) where redriven_at is null;
