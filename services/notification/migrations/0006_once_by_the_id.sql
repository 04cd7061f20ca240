-- The id of a notification is derived from its event and user, so the primary key holds what this constraint held: one
-- notification per event and user. No release has had the constraint.
alter table notifications drop constraint notification_once_per_event_and_user;
