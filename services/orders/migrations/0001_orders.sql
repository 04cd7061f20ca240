-- Orders: written down once, then sent to a broker by whoever claims them. The states are held by the database itself:
-- whoever changes a row, only the steps of docs/states.md can be taken, and each is written down as it is taken.

-- What was asked under a key, and what came of it so far. One caller's key never meets another's.
create table idempo_ledger (
  caller          text not null,
  idempotency_key text not null,
  order_row_id    bigint not null,                         -- outbox_orders.id
  request_digest  text not null,                           -- sha256:<hex> of the canonical request
  status          text not null default 'accepted',
  result_digest   text,                                    -- sha256:<hex> of `answer`, once it is the last one
  http_status     smallint not null default 201,           -- of the first answer; a repeat gets 200
  answer          bytea not null,                          -- the bytes of the result so far
  first_seen_at   timestamptz not null default now(),
  last_seen_at    timestamptz not null default now(),
  seen_count      bigint not null default 1,
  expires_at      timestamptz not null,
  primary key (caller, idempotency_key),
  constraint idempo_ledger_once_per_order unique (order_row_id),
  constraint idempo_ledger_status_is_known check (status in ('accepted', 'succeeded', 'failed')),
  constraint idempo_ledger_digest_iff_ended check ((status = 'accepted') = (result_digest is null))
) with (fillfactor = 50);                                  -- rewritten when the order ends, and by every repeat

-- retention: what has ended
create index idempo_ledger_expiry on idempo_ledger (expires_at) where status <> 'accepted';

create table outbox_orders (
  id                 bigint generated always as identity primary key,
  created_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now(),   -- set by every step
  version            int not null default 1,               -- how many steps it has taken; also that of its events
  caller             text not null,                        -- who ordered it
  idempotency_key    text not null,
  order_id           text not null,                        -- the caller's own name for it
  client_order_id    text not null,                        -- what the broker knows it by: the same at every try, for ever
  order_request_json jsonb not null,                       -- as it was checked: text in NFC, decimals as text
  request_digest     text not null,
  adapter            text not null,                        -- the broker that it goes to: no other is sent it, or asked about it
  instrument         text not null,
  side               text not null,
  qty                numeric not null,
  price              numeric,                              -- null: at the market's
  headers            jsonb not null default '{}',          -- the trace that it goes on in

  status             text not null default 'pending',
  attempts           int not null default 0,               -- counted when claimed
  last_error_code    text,
  last_error_msg     text,
  changed_by         text not null,                        -- who made the last step that was not made under a lease

  next_retry_at      timestamptz not null default now(),
  lease_epoch        bigint not null default 0,            -- the fence: raised by every claim
  locked_by          text,
  locked_at          timestamptz,
  lease_until        timestamptz,

  first_sent_at      timestamptz,                          -- when bytes may first, and last, have gone to the broker,
  last_sent_at       timestamptz,                          -- as their timestamps say it: by the broker's clock
  in_doubt_since     timestamptz,                          -- bytes may be out since then, and what the broker made of them is not known
  asked              int not null default 0,               -- how often the broker was asked about it while in doubt
  broker_order_id    text,
  broker_result      jsonb,                                -- what the broker made of it, in our words
  evidence           jsonb,                                -- the broker's last answer, raw
  evidence_digest    text,
  done_at            timestamptz,
  expires_at         timestamptz not null,                 -- removed after this, if it has ended; the end puts it off once more

  constraint order_key_is_unique unique (idempotency_key, caller),
  constraint order_id_is_unique unique (order_id, caller),
  constraint order_client_order_id_is_unique unique (client_order_id),
  constraint order_status_is_known check (status in ('pending', 'sending', 'succeeded', 'failed', 'aborted', 'unknown')),
  constraint order_side_is_known check (side in ('BUY', 'SELL')),
  constraint order_qty_is_positive check (qty > 0),
  constraint order_price_is_positive check (price > 0),
  constraint order_sending_is_leased check (status <> 'sending' or lease_until is not null),
  constraint order_leased_is_worked check (lease_until is null or status in ('sending', 'unknown')),
  constraint order_done_iff_ended check ((status in ('succeeded', 'aborted')) = (done_at is not null)),
  constraint order_unknown_is_in_doubt check (status <> 'unknown' or in_doubt_since is not null),
  -- Nobody can cancel, send anew or call ended what the broker may have: a worker's stop cannot give it back either.
  constraint order_in_doubt_is_not_free check (in_doubt_since is null or status in ('sending', 'unknown')),
  constraint order_unhappy_says_why check (status not in ('failed', 'aborted', 'unknown') or last_error_code is not null),
  constraint order_evidence_is_bounded check (length(evidence::text) <= 65536)
) with (
  fillfactor = 50,                                         -- a row is rewritten a few times in its life: leave room on its page
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- claim: what is ready; and how old the oldest is
create index outbox_orders_ready on outbox_orders (adapter, next_retry_at) where status = 'pending';
-- claim: what dead workers held
create index outbox_orders_leased on outbox_orders (adapter, lease_until) where status = 'sending';
-- what waits for its next try
create index outbox_orders_failed on outbox_orders (next_retry_at) where status = 'failed';
-- what is in doubt: asked about when due, and the operator's list
create index outbox_orders_unknown on outbox_orders (adapter, next_retry_at) where status = 'unknown';
create index outbox_orders_in_doubt on outbox_orders (in_doubt_since, id) where status = 'unknown';
-- reconciliation: what ended well of late
create index outbox_orders_succeeded on outbox_orders (done_at) where status = 'succeeded';
-- the list of orders, newest first, and what it can be narrowed to; an order_id has its own above, and so has what goes on
create index outbox_orders_listed on outbox_orders (created_at, id);
create index outbox_orders_of_instrument on outbox_orders (instrument, created_at, id);
create index outbox_orders_aborted on outbox_orders (created_at, id) where status = 'aborted';
-- retention
create index outbox_orders_expiry on outbox_orders (expires_at) where done_at is not null;

-- Every step of every order.
create table order_status_history (
  order_row_id bigint not null references outbox_orders on delete cascade,
  place        int not null,                               -- the order's version after it
  from_status  text,                                       -- null: it was accepted
  to_status    text not null,
  attempt      int not null,
  code         text,
  detail       text,
  at           timestamptz not null,
  by           text not null,
  primary key (order_row_id, place)
);

create function take_order_step() returns trigger language plpgsql as $$
begin
  if not (old.status || '>' || new.status) = any (array[
    'pending>sending', 'pending>aborted',
    'sending>sending', 'sending>succeeded', 'sending>failed', 'sending>aborted', 'sending>unknown', 'sending>pending',
    'failed>pending', 'failed>aborted',
    'unknown>sending', 'unknown>succeeded', 'unknown>aborted', 'unknown>pending'])
  then
    raise exception 'an order cannot go from % to %', old.status, new.status using errcode = 'restrict_violation';
  end if;
  new.version := old.version + 1;
  new.updated_at := clock_timestamp();
  return new;
end $$;

create function write_order_step() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into order_status_history (order_row_id, place, from_status, to_status, attempt, at, by)
    values (new.id, new.version, null, new.status, new.attempts, new.created_at, new.changed_by);
  else
    -- The attempt is the one that this step belongs to: an attempt given back was still made.
    insert into order_status_history (order_row_id, place, from_status, to_status, attempt, code, detail, at, by)
    values (new.id, new.version, old.status, new.status, greatest(old.attempts, new.attempts),
            case when new.status in ('failed', 'aborted', 'unknown') then new.last_error_code end,
            case when new.status in ('failed', 'aborted', 'unknown') then new.last_error_msg end,
            new.updated_at,
            case when new.changed_by is distinct from old.changed_by then new.changed_by
                 when old.status = 'failed' and new.status = 'pending' then 'backoff'
                 else coalesce(new.locked_by, old.locked_by, new.changed_by) end);
  end if;
  return null;
end $$;

-- A row that is claimed again after its worker died takes a step too, from sending to sending.
create trigger order_steps_are_checked before update on outbox_orders for each row
  when (old.status is distinct from new.status or old.status = 'sending' and old.lease_epoch is distinct from new.lease_epoch)
  execute function take_order_step();
create trigger order_steps_are_written after update on outbox_orders for each row
  when (old.version is distinct from new.version) execute function write_order_step();
create trigger orders_are_written_when_accepted after insert on outbox_orders for each row
  execute function write_order_step();

-- Append-only, whoever asks; history goes only with its order.
create function refuse_change_of_history() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    if not exists (select from outbox_orders where id = old.order_row_id) then return old; end if;
  end if;
  raise exception 'order_status_history is append-only' using errcode = 'restrict_violation';
end $$;
create trigger order_status_history_is_append_only before update or delete on order_status_history
  for each row execute function refuse_change_of_history();
create trigger order_status_history_is_not_emptied before truncate on order_status_history
  for each statement execute function refuse_change_of_history();

-- Cancels of what may have been sent: asked of the broker by a worker of their own.
create table cancel_requests (
  order_row_id  bigint primary key references outbox_orders on delete cascade,
  adapter       text not null,                             -- the order's
  requested_by  text not null,
  requested_at  timestamptz not null default now(),
  status        text not null default 'requested',
  attempt_count int not null default 0,
  next_retry_at timestamptz not null default now(),
  lease_epoch   bigint not null default 0,
  locked_by     text,
  locked_at     timestamptz,
  lease_until   timestamptz,
  last_error    text,
  result        jsonb,                                     -- what the broker said
  done_at       timestamptz,
  constraint cancel_status_is_known check (status in ('requested', 'sending', 'done', 'refused', 'aborted')),
  constraint cancel_leased_iff_sending check ((status = 'sending') = (lease_until is not null))
) with (fillfactor = 50);

-- claim: what is ready, and what dead workers held
create index cancel_requests_ready on cancel_requests (adapter, next_retry_at) where status = 'requested';
create index cancel_requests_leased on cancel_requests (adapter, lease_until) where status = 'sending';

-- The kill switch: '*' is all instruments. No row is active.
create table trading_state (
  scope  text primary key,
  mode   text not null,
  reason text not null,
  set_by text not null,
  set_at timestamptz not null default now(),
  constraint trading_mode_is_known check (mode in ('active', 'halt', 'cancel-only'))
);

create table trading_state_audit (
  audit_id  bigint generated always as identity primary key,
  scope     text not null,
  from_mode text not null,
  to_mode   text not null,
  reason    text not null,
  set_by    text not null,
  set_at    timestamptz not null default now()
);

-- What a person said became of an order in doubt, and why. Kept longer than the order.
create table order_resolutions (
  resolution_id   bigint generated always as identity primary key,
  order_row_id    bigint not null,
  client_order_id text not null,
  "as"            text not null,
  reason          text not null,
  by              text not null,
  at              timestamptz not null default now(),
  constraint resolution_is_known check ("as" in ('taken', 'not-taken')),
  constraint resolution_says_who check (by <> '' and length(by) <= 128),
  constraint resolution_says_why check (reason <> '' and length(reason) <= 500)
);

-- How the last look at the broker's books went.
create table reconciliations (
  adapter         text primary key,
  last_started_at timestamptz,
  last_ok_at      timestamptz,
  last_error      text,
  seen            bigint not null default 0,
  mismatches      bigint not null default 0,
  details         jsonb not null default '[]'              -- the first of the mismatches
);

-- Orders taken in within one second of the clock, over all processes; one row, and used only where there is a limit.
create table order_rate (
  scope      text primary key,
  counted_at timestamptz not null default '-infinity',     -- of the last orders that were taken in; never goes back
  taken      int not null default 0,                       -- in its second
  granted    int not null default 0                        -- of those that were last asked for
) with (fillfactor = 10);
insert into order_rate (scope) values ('*');

-- When the next order may go to a broker, over all senders; used only where there is a rate.
create table broker_turns (
  adapter text primary key,
  next_at timestamptz not null
) with (fillfactor = 10);
