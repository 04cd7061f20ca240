-- Dead letters that are redriven or discarded together. A step changes some rows and moves `position` in one transaction, so
-- that a row is in one step at most, and a batch goes on where it was after a crash.
create table dead_letter_batches (
  batch_id     uuid primary key,
  act          text not null,
  of_table     text not null,
  filter       jsonb not null,
  through      bigint not null,                            -- rows that died later are not in the batch
  position     bigint not null default 0,                  -- the cursor of the last row that was looked at
  total        int not null,                               -- when it began; counted up to a bound
  total_capped boolean not null,
  examined     int not null default 0,
  applied      int not null default 0,                     -- of them, those that were still dead
  state        text not null default 'RUNNING',
  created_by   text not null,
  reason       text not null,
  error        text,                                       -- of the last step, if it failed
  created_at   timestamptz not null default now(),
  finished_at  timestamptz,
  constraint dead_letter_batch_act_is_known check (act in ('redrive', 'discard')),
  constraint dead_letter_batch_state_is_known check (state in ('RUNNING', 'DONE', 'STOPPED')),
  constraint dead_letter_batch_finished check ((state = 'RUNNING') = (finished_at is null))
);

-- the worker: the oldest batch that runs
create index dead_letter_batches_running on dead_letter_batches (created_at) where state = 'RUNNING';
-- the list, newest first
create index dead_letter_batches_time on dead_letter_batches (created_at, batch_id);
-- retention
create index dead_letter_batches_finished on dead_letter_batches (finished_at) where state <> 'RUNNING';
