-- What a program needs beside the words: {"ticket_id": …, "match_id": …}. Most notifications have none.
-- Rows from before have null, so nothing is rewritten, and there is nothing to validate.
alter table notifications add column data jsonb;
alter table notifications add constraint notification_data_is_an_object check (jsonb_typeof(data) = 'object') not valid;
