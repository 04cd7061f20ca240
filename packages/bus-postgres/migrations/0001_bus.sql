-- Who consumes what. A publisher reads this table in the statement that stores its messages.
create table bus_subscriptions (
  consumer   text not null,
  subject    text not null,
  created_at timestamptz not null default now(),
  primary key (consumer, subject)
);

-- publish: who gets messages of this subject
create index bus_subscriptions_subject on bus_subscriptions (subject, consumer);

create table bus_messages (
  message_id    bigint generated always as identity primary key,
  event_id      uuid not null,
  event_type    text not null,
  subject       text not null,
  aggregate_key text not null,
  occurred_at   text not null,
  headers       jsonb not null,
  payload       bytea not null,
  published_at  timestamptz not null default now(),
  constraint bus_message_once unique (event_id)            -- an event that is published twice is stored once
);

-- a new consumer gets what was published before it came
create index bus_messages_subject on bus_messages (subject, message_id);
-- retention
create index bus_messages_age on bus_messages (published_at);

-- One row per message and consumer, worked by claims.
create table bus_deliveries (
  delivery_id   bigint generated always as identity primary key,
  consumer      text not null,
  message_id    bigint not null,
  aggregate_key text not null,
  status        text not null default 'PENDING',
  attempt_count int not null default 0,
  next_retry_at timestamptz not null default now(),
  lease_epoch   bigint not null default 0,
  locked_by     text,
  locked_at     timestamptz,
  lease_until   timestamptz,
  last_error    text,
  done_at       timestamptz,
  constraint bus_delivery_status_is_known check (status in ('PENDING', 'IN_FLIGHT', 'DONE', 'DEAD')),
  constraint bus_delivery_leased_iff_in_flight check ((status = 'IN_FLIGHT') = (lease_until is not null)),
  constraint bus_delivery_done_at_iff_done check ((status = 'DONE') = (done_at is not null))
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- claim: ready, in order of publication
create index bus_deliveries_ready on bus_deliveries (consumer, message_id) where status = 'PENDING';
-- claim: rows whose worker died
create index bus_deliveries_leased on bus_deliveries (consumer, lease_until) where status = 'IN_FLIGHT';
-- claim: aggregates that wait for a retry
create index bus_deliveries_retrying on bus_deliveries (consumer, next_retry_at) where status = 'PENDING' and attempt_count > 0;
-- claim: is there an unfinished delivery of this aggregate before this one?
create index bus_deliveries_unfinished on bus_deliveries (consumer, aggregate_key, message_id) where done_at is null;
-- claim: parked aggregates (none: a dead delivery was put away by its consumer and counts as done)
create index bus_deliveries_dead on bus_deliveries (consumer, message_id) where status = 'DEAD';
-- retention
create index bus_deliveries_done on bus_deliveries (done_at) where status = 'DONE';
-- retention of messages: is anybody still to get it?
create index bus_deliveries_message on bus_deliveries (message_id);
