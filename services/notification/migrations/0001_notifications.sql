-- What a user is to be told, one row per event and user, worked by claims.
create table notifications (
  notification_id uuid primary key,                        -- UUID v7, the same at every try: receivers tell duplicates by it
  event_id        uuid not null,
  user_id         text not null,
  event_type      text not null,
  text            jsonb not null,                          -- {"en": …, "ja": …}
  occurred_at     timestamptz not null,                    -- when the event happened, not when we heard of it
  headers         jsonb not null default '{}',             -- the trace that it goes on in
  created_at      timestamptz not null default now(),
  status          text not null default 'PENDING',
  attempt_count   int not null default 0,                  -- counted when claimed
  next_retry_at   timestamptz not null default now(),
  lease_epoch     bigint not null default 0,               -- the fence: raised by every claim
  locked_by       text,
  locked_at       timestamptz,
  lease_until     timestamptz,
  last_error      text,
  sent_at         timestamptz,
  constraint notification_once_per_event_and_user unique (event_id, user_id),
  constraint notification_status_is_known check (status in ('PENDING', 'PROCESSING', 'SENT', 'FAILED')),
  constraint notification_leased_iff_processing check ((status = 'PROCESSING') = (lease_until is not null)),
  constraint notification_sent_at_iff_sent check ((status = 'SENT') = (sent_at is not null))
) with (fillfactor = 50);                                  -- a row is rewritten twice in its life: leave room on its page

-- claim: rows that are ready
create index notifications_ready on notifications (next_retry_at) where status = 'PENDING';
-- claim: rows whose worker died
create index notifications_leased on notifications (lease_until) where status = 'PROCESSING';
-- a user's inbox, newest first
create index notifications_inbox on notifications (user_id, occurred_at desc, notification_id desc);
-- retention
create index notifications_sent on notifications (sent_at) where status = 'SENT';

-- Notifications that were given up. A row is written by the statement that makes its notification FAILED.
create table notification_dlq (
  dlq_id          bigint generated always as identity primary key,
  notification_id uuid not null,
  event_id        uuid not null,
  user_id         text not null,
  event_type      text not null,
  text            jsonb not null,
  attempt_count   int not null,
  last_error      text,
  failed_at       timestamptz not null default now(),
  redriven_at     timestamptz,                             -- somebody asked for another try; null again if that failed too
  constraint notification_dlq_once_per_notification unique (notification_id)
);

-- the operator's list
create index notification_dlq_open on notification_dlq (dlq_id) where redriven_at is null;
-- retention
create index notification_dlq_redriven on notification_dlq (redriven_at) where redriven_at is not null;
