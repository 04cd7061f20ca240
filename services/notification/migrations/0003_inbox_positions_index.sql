-- migrate: no transaction
-- follow an inbox from a position on; find its latest position
create index concurrently if not exists notifications_followed on notifications (user_id, xid, notification_id);
