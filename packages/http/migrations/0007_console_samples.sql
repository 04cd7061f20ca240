-- What each process of the service did in each minute, for the curves of the console. Kept for a day.
create table console_samples (
  minute  timestamptz not null,
  process text not null,
  sample  jsonb not null,
  primary key (minute, process)
);
