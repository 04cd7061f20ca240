-- Grants booked ahead. The row is also the memory of its idempotency key, for ever: the same request finds it again.
create table point_reservations (
  id              uuid primary key,                        -- UUID v7; also the id of the event which says that it is due
  user_id         text not null,
  point_amount    bigint not null,
  execute_at      timestamptz not null,                    -- not before this, by the database's clock
  status          text not null default 'PENDING',
  idempotency_key text not null,                           -- who asked, a space, their key; or schedule:<id>:<occurrence>:<user>
  request_hash    bytea not null,                          -- SHA-256 of what was asked for under the key
  lot_expires_at  timestamptz,                             -- when the granted points run out; null: never
  reason          text,                                    -- why, in the caller's words
  last_error      text,                                    -- why it FAILED
  transaction_id  uuid,                                    -- what granted it
  schedule_id     uuid,                                    -- of a recurring grant: which, and
  occurrence_at   timestamptz,                             -- which of its times
  sent_at         timestamptz,                             -- when the worker was last told of it
  attempt_count   int not null default 0,                  -- how often the worker was told
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  constraint point_reservation_key_is_unique unique (idempotency_key),
  constraint point_reservation_status_is_known check (status in ('PENDING', 'PROCESSING', 'DONE', 'FAILED', 'CANCELLED')),
  constraint point_reservation_grants_something check (point_amount > 0),
  constraint point_reservation_time_has_four_digits
    check (execute_at >= '0001-01-01 00:00:00+00' and execute_at < '10000-01-01 00:00:00+00'),
  constraint point_reservation_done_iff_granted check ((status = 'DONE') = (transaction_id is not null)),
  constraint point_reservation_sent_iff_taken_up check ((status in ('PENDING', 'CANCELLED')) = (sent_at is null)),
  constraint point_reservation_failed_says_why check (status <> 'FAILED' or last_error is not null),
  constraint point_reservation_occurs_by_its_schedule check ((schedule_id is null) = (occurrence_at is null)),
  constraint point_reservation_hash_is_sha256 check (octet_length(request_hash) = 32)
) with (
  fillfactor = 50,                                         -- a row is rewritten twice in its life: leave room on its page
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- Each of these says something that holds of every row, and that only its own queries say too: so the planner cannot take
-- one of them, read from end to end, for the primary key when it looks for an id in a table that it believes to be empty.
-- scheduler: what is due, in its order, and what is due next
create index point_reservations_due on point_reservations (execute_at, id)
  where status = 'PENDING' and execute_at < 'infinity';
-- scheduler: how many are under way, and which of them for too long
create index point_reservations_sent on point_reservations (sent_at, id)
  where status = 'PROCESSING' and sent_at < 'infinity';
-- a user's reservations, newest first
create index point_reservations_of_user on point_reservations (user_id, id) where user_id is not null;
-- confirm: what is still to come for a user
create index point_reservations_to_come on point_reservations (user_id) include (point_amount)
  where status in ('PENDING', 'PROCESSING') and user_id is not null;

-- Recurring grants: at every time that `cron` names in `time_zone`, each user of the schedule gets a reservation.
create table point_schedules (
  schedule_id     uuid primary key,
  name            text not null,
  cron            text not null,
  time_zone       text not null,                           -- an IANA name: Asia/Tokyo
  point_amount    bigint not null,
  lot_ttl_seconds bigint,                                  -- how long the points can be spent; null: for ever
  reason          text,
  catch_up        text not null,                           -- of occurrences that nobody was there for: all, the latest, none
  status          text not null default 'ACTIVE',
  next_run_at     timestamptz,                             -- the occurrence that is next, or under way; null: there is none left
  run_cursor      text,                                    -- under way: the last user who has a reservation for it ('': none yet)
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  constraint point_schedule_name_is_unique unique (name),
  constraint point_schedule_grants_something check (point_amount > 0),
  constraint point_schedule_ttl_is_positive check (lot_ttl_seconds > 0),
  constraint point_schedule_catch_up_is_known check (catch_up in ('all', 'latest', 'none')),
  constraint point_schedule_status_is_known check (status in ('ACTIVE', 'PAUSED', 'ENDED')),
  constraint point_schedule_active_has_a_next_run check (status <> 'ACTIVE' or next_run_at is not null)
);

-- scheduler: what is due
create index point_schedules_due on point_schedules (next_run_at) where status = 'ACTIVE';

create table point_schedule_users (
  schedule_id uuid not null references point_schedules,
  user_id     text not null,
  created_at  timestamptz not null default now(),
  primary key (schedule_id, user_id)
);
