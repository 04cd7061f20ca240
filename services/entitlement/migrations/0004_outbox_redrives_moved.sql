-- Every redrive is kept in the kernel's redrives now, whatever it was of. No release has had the old table.
insert into redrives (of_table, of_key, redriven_by, reason, attempt_count, last_error, redriven_at)
select 'outbox_events', event_id::text, redriven_by, reason, attempt_count, last_error, redriven_at
  from outbox_redrives
 order by redrive_id;

drop table outbox_redrives;
