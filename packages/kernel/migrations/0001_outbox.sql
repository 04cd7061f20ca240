-- Events that are to reach the bus. A row exists if and only if the state change that it tells of has committed.
create table outbox_events (
  event_id      uuid primary key,                          -- UUID v7; consumers tell duplicates by it
  event_type    text not null,
  subject       text not null,                             -- where it is published: entitlement.events
  aggregate_key text not null,                             -- what it is about; its events keep their order
  version       bigint not null,                           -- the aggregate's, after the change
  payload       jsonb not null,                            -- the event as JSON; the relay encodes it
  headers       jsonb not null default '{}',               -- trace context and whatever else travels along
  occurred_at   timestamptz not null default now(),
  created_at    timestamptz not null default clock_timestamp(),
  position      bigint generated always as identity,       -- drawn under the aggregate's row lock: the order of its versions
  status        text not null default 'PENDING',
  attempt_count int not null default 0,                    -- counted when claimed
  next_retry_at timestamptz not null default now(),
  lease_epoch   bigint not null default 0,                 -- the fence: raised by every claim
  locked_by     text,
  locked_at     timestamptz,
  lease_until   timestamptz,
  last_error    text,
  published_at  timestamptz,
  constraint outbox_status_is_known check (status in ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED')),
  constraint outbox_leased_iff_in_flight check ((status = 'IN_FLIGHT') = (lease_until is not null)),
  constraint outbox_published_at_iff_published check ((status = 'PUBLISHED') = (published_at is not null)),
  constraint outbox_attempts_not_negative check (attempt_count >= 0)
) with (
  fillfactor = 50,                                         -- a row is rewritten twice in its life: leave room on its page
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- claim: rows that are ready, in order
create index outbox_events_ready on outbox_events (position) where status = 'PENDING';
-- claim: rows whose worker died
create index outbox_events_leased on outbox_events (lease_until) where status = 'IN_FLIGHT';
-- claim: aggregates that wait for a retry
create index outbox_events_retrying on outbox_events (next_retry_at) where status = 'PENDING' and attempt_count > 0;
-- claim: is there an unfinished event of this aggregate before this one? (Not said by its status: the planner would then
-- take this index for the smaller ones above as well.)
create index outbox_events_unfinished on outbox_events (aggregate_key, position) where published_at is null;
-- claim (parked aggregates) and the operator's list of failed events
create index outbox_events_failed on outbox_events (position) where status = 'FAILED';
-- retention
create index outbox_events_published on outbox_events (published_at) where status = 'PUBLISHED';
