-- Who let a dead row be tried again, why, and what it had come to by then. Written by the statement that redrives. Few,
-- small, and kept: the row itself begins anew with the redrive, and is removed in time.
create table redrives (
  redrive_id    bigint generated always as identity primary key,
  of_table      text not null,                             -- outbox_events, inbox_dlq, notifications, …
  of_key        text not null,                             -- the row's key in that table
  redriven_by   text not null,
  reason        text not null,
  attempt_count int not null,
  last_error    text,
  redriven_at   timestamptz not null default now(),
  constraint redrive_says_who check (redriven_by <> '' and length(redriven_by) <= 128),
  constraint redrive_says_why check (reason <> '' and length(reason) <= 500)
);

-- what became of one row
create index redrives_of_row on redrives (of_table, of_key, redrive_id);
