-- Where a row stands in its user's inbox, for those who follow it live: (xid, notification_id). Whoever reads only below
-- pg_snapshot_xmin(pg_current_snapshot()) cannot pass over a row that commits later than its neighbours.
-- Rows from before have 0, and go by their id. A constant default rewrites nothing.
alter table notifications add column xid xid8 not null default '0';
alter table notifications alter column xid set default pg_current_xact_id();
