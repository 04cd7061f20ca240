-- Which events have been dealt with. The row commits with the effect, so an event that comes again finds it.
create table processed_events (
  consumer     text not null,
  event_id     uuid not null,
  result       text not null default 'effect',             -- dead: it is in inbox_dlq and had no effect (yet)
  processed_at timestamptz not null default now(),
  primary key (consumer, event_id),
  constraint processed_result_is_known check (result in ('effect', 'dead'))
);

-- retention
create index processed_events_age on processed_events (processed_at);

-- Events that failed or may have killed their process, with the number of tries begun. Gone once the event is dealt with.
create table inbox_attempts (
  consumer      text not null,
  event_id      uuid not null,
  attempt_count int not null,
  last_error    text,
  updated_at    timestamptz not null default now(),
  primary key (consumer, event_id)
);

-- retention
create index inbox_attempts_age on inbox_attempts (updated_at);

-- Events that a consumer gave up, whole: nothing else needs to be at hand to try them again.
create table inbox_dlq (
  dlq_id        bigint generated always as identity primary key,
  consumer      text not null,
  event_id      uuid not null,
  event_type    text not null,
  subject       text not null,
  aggregate_key text not null,
  occurred_at   text not null,
  headers       jsonb not null,
  payload       bytea not null,
  dead_at       timestamptz not null default now(),
  status        text not null default 'DEAD',              -- PENDING: somebody asked for another try
  attempt_count int not null default 0,
  next_retry_at timestamptz not null default now(),
  lease_epoch   bigint not null default 0,
  locked_by     text,
  locked_at     timestamptz,
  lease_until   timestamptz,
  last_error    text,
  resolved_at   timestamptz,
  constraint inbox_dlq_once_per_consumer unique (consumer, event_id),
  constraint inbox_dlq_status_is_known check (status in ('DEAD', 'PENDING', 'PROCESSING', 'RESOLVED')),
  constraint inbox_dlq_leased_iff_processing check ((status = 'PROCESSING') = (lease_until is not null)),
  constraint inbox_dlq_resolved_at_iff_resolved check ((status = 'RESOLVED') = (resolved_at is not null))
);

-- claim: asked for another try
create index inbox_dlq_ready on inbox_dlq (consumer, next_retry_at) where status = 'PENDING';
-- claim: rows whose worker died
create index inbox_dlq_leased on inbox_dlq (consumer, lease_until) where status = 'PROCESSING';
-- the operator's list
create index inbox_dlq_dead on inbox_dlq (consumer, dlq_id) where status = 'DEAD';
-- retention
create index inbox_dlq_resolved on inbox_dlq (resolved_at) where status = 'RESOLVED';
