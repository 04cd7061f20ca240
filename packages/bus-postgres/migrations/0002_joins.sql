-- Consumers that are being given the history of their subjects, in batches. A row lives from the first subscription until
-- every kept message has its delivery; then the consumer is in bus_subscriptions. Publishers do not read this table.
create table bus_joins (
  consumer   text primary key,
  subjects   text[] not null,
  copied_to  bigint not null default 0,             -- every message of these subjects up to this id has its delivery
  copy_until bigint not null default 0,             -- no message up to this id can still be committed
  copied     bigint not null default 0,             -- how many deliveries were made, for the log
  started_at timestamptz not null default now()
);
