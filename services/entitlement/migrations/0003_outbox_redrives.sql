-- Who let a FAILED event be tried again, and what it had come to by then. Few, small, and kept: the event's own row begins
-- anew with the redrive, and is removed in time.
create table outbox_redrives (
  redrive_id    bigint generated always as identity primary key,
  event_id      uuid not null,
  redriven_by   text not null,
  reason        text not null,
  attempt_count int not null,
  last_error    text,
  redriven_at   timestamptz not null default now()
);

-- what became of one event
create index outbox_redrives_event on outbox_redrives (event_id);
