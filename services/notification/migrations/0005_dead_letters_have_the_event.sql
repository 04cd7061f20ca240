-- The event of a notification, so that its dead letter has everything that is needed to send it by hand.
-- Rows from before have null, so nothing is rewritten, and there is nothing to validate.
alter table notifications add column payload jsonb;        -- the event as JSON
alter table notifications add constraint notification_payload_is_an_object
  check (jsonb_typeof(payload) = 'object') not valid;
alter table notification_dlq add column payload jsonb;
alter table notification_dlq add column data jsonb;
