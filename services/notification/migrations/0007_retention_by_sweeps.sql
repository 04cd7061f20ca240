-- Retention reads the notifications page by page, so that sending one writes no index entry for it.
drop index if exists notifications_sent;
