-- When the tables were audited last, and what was found. A row for each service: the process that updates `started_at` has its turn.
create table audits (
  name        text primary key,
  started_at  timestamptz not null,
  finished_at timestamptz,                                 -- null: it has not finished yet
  violations  int not null default 0,                      -- at most 20 of each rule are counted
  findings    jsonb not null default '[]'
);
