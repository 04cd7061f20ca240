-- Emails to send; a claimed table.
create table emails (
  email_id      bigint generated always as identity primary key,
  recipient     text not null,
  body          text not null,
  status        text not null default 'QUEUED',
  attempt_count int not null default 0,                    -- counted by the claim
  next_retry_at timestamptz not null default now(),
  lease_epoch   bigint not null default 0,                 -- the fencing token: raised by every claim
  locked_by     text,
  locked_at     timestamptz,
  lease_until   timestamptz,
  last_error    text,
  sent_at       timestamptz,
  constraint email_status_is_known check (status in ('QUEUED', 'SENDING', 'SENT', 'FAILED')),
  constraint email_leased_iff_sending check ((status = 'SENDING') = (lease_until is not null)),
  constraint email_sent_at_iff_sent check ((status = 'SENT') = (sent_at is not null))
) with (fillfactor = 50);                                  -- a row is updated twice: leave room on its page

-- claim: ready rows
create index emails_ready on emails (next_retry_at) where status = 'QUEUED';
-- claim: expired leases
create index emails_leased on emails (lease_until) where status = 'SENDING';
-- retention
create index emails_sent on emails (sent_at) where status = 'SENT';
-- dead letters
create index emails_failed on emails (email_id) where status = 'FAILED';
