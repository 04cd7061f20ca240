-- Retention reads the messages page by page, so no publisher has to write an index entry for it.
drop index if exists bus_messages_age;
