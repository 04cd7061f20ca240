-- The ledger of points. All of it is written by one statement (store/write-ledger.ts), whoever changes points, while the
-- user's row in point_root is locked; so rows here refer to each other without foreign keys, whose checks would lock and
-- rewrite the rows that they look at. `todoke audit points` asks for all that holds between the tables.
-- Times have milliseconds, so that the database and whoever computes with them mean the same.

-- What a user has. A cache of the transactions: it can be made again from them.
create table point_root (
  user_id    text primary key,
  balance    bigint not null default 0,                    -- can be spent
  held       bigint not null default 0,                    -- set aside by holds
  version    bigint not null default 0,                    -- how many transactions the user has
  updated_at timestamptz not null default date_trunc('milliseconds', now()),
  constraint point_balance_not_negative check (balance >= 0),
  constraint point_held_not_negative check (held >= 0),
  constraint point_root_within_bigint check (balance <= 9223372036854775807 - held),
  constraint point_version_not_negative check (version >= 0)
) with (fillfactor = 50);                                  -- a row is rewritten with every change: leave room on its page

-- What happened, for ever. Double entry by construction: every row moves `moved` points from one account to another.
create table point_transactions (
  id              uuid primary key,                        -- UUID v7
  idempotency_key text not null,
  user_id         text not null,
  point_amount    bigint not null,                         -- the change of the user's balance, with its sign
  kind            text not null,
  moved           bigint not null,
  from_account    text not null generated always as (
    case when kind in ('ADD', 'GRANT') then 'issuer'
         when kind in ('SUB', 'EXPIRE', 'HOLD') then 'user:' || user_id
         when kind in ('RELEASE', 'CAPTURE') then 'held:' || user_id
         when kind = 'REFUND' then 'spent' end) stored,
  to_account      text not null generated always as (
    case when kind in ('ADD', 'GRANT', 'RELEASE', 'REFUND') then 'user:' || user_id
         when kind in ('SUB', 'CAPTURE') then 'spent'
         when kind = 'EXPIRE' then 'expired'
         when kind = 'HOLD' then 'held:' || user_id end) stored,
  balance_after   bigint not null,
  held_after      bigint not null,
  version         bigint not null,                         -- 1 for the user's first transaction
  reason          text,                                    -- why, in the caller's words
  source          text,                                    -- where it comes from, and which of those
  source_id       text,
  refers_to       uuid,                                    -- the lot that ran out, the hold, or what is refunded
  effective_at    timestamptz not null,                    -- from when on it counts: what runs out is booked a moment later
  created_at      timestamptz not null,                    -- never before that of the user's version before
  constraint point_transaction_happens_once unique (idempotency_key),
  constraint point_transaction_versions_are_unique unique (user_id, version),
  constraint point_transaction_kind_is_known
    check (kind in ('ADD', 'GRANT', 'SUB', 'EXPIRE', 'HOLD', 'RELEASE', 'CAPTURE', 'REFUND')),
  constraint point_transaction_moves_something check (moved > 0),
  constraint point_transaction_amount_is_what_moved check (
    point_amount = case when kind in ('ADD', 'GRANT', 'RELEASE', 'REFUND') then moved
                        when kind in ('SUB', 'EXPIRE', 'HOLD') then -moved
                        when kind = 'CAPTURE' then 0 end),
  constraint point_transaction_refers_to_its_cause
    check ((kind in ('EXPIRE', 'RELEASE', 'CAPTURE', 'REFUND')) = (refers_to is not null)),
  constraint point_transaction_leaves_nothing_negative check (balance_after >= 0 and held_after >= 0),
  constraint point_transaction_version_starts_at_1 check (version >= 1),
  constraint point_transaction_effective_when_booked check (effective_at <= created_at)
);

-- a statement from a time on, and the balance as of a time
create index point_transactions_time on point_transactions (user_id, created_at, version);
-- the balance as of a time: what counted before it was booked
create index point_transactions_late on point_transactions (user_id, effective_at) where effective_at < created_at;

-- Append-only, whoever asks: also the owner of the table.
create function refuse_change_of_point_transactions() returns trigger language plpgsql as $$
begin
  raise exception 'point_transactions is append-only: book another transaction instead of a % of one', lower(tg_op)
    using errcode = 'restrict_violation';
end $$;

create trigger point_transactions_are_append_only
  before update or delete or truncate on point_transactions
  for each statement execute function refuse_change_of_point_transactions();

-- A service that connects as a role of its own, which does not own the tables, cannot even take the trigger away: such a
-- role is made by deploy/postgres/points-role.sql.

-- What is left of every grant. A user's lots add up to the balance.
create table point_lots (
  lot_id     uuid primary key,                             -- the transaction that made it
  user_id    text not null,
  granted    bigint not null,
  remaining  bigint not null,
  expires_at timestamptz not null,                         -- infinity: never
  version    bigint not null,                              -- of the user when it was made: the older, the sooner it is spent
  created_at timestamptz not null,
  is_open    boolean not null generated always as (remaining > 0) stored,
  constraint point_lot_remaining_within_granted check (remaining between 0 and granted),
  constraint point_lot_grants_something check (granted > 0)
) with (fillfactor = 80);

-- Not said by `remaining` but by is_open, which rarely changes: a spend leaves these indexes alone until the lot is used up.
-- spend: the lot that ends soonest, then the oldest; and what has run out of one user
create index point_lots_to_spend on point_lots (user_id, expires_at, version) where is_open;
-- expiry: whose lots have run out
create index point_lots_running_out on point_lots (expires_at) where is_open and expires_at < 'infinity';

-- What a spend or a hold took from which lot, and how much of it was given back there.
create table point_lot_uses (
  transaction_id uuid not null,                            -- a SUB or a HOLD
  lot_id         uuid not null,
  amount         bigint not null,
  returned       bigint not null default 0,
  primary key (transaction_id, lot_id),
  constraint point_lot_use_takes_something check (amount > 0),
  constraint point_lot_use_returned_within_amount check (returned between 0 and amount)
) with (fillfactor = 80);

-- Points set aside: captured (the rest is released) or released, or given back when their time is up.
create table point_holds (
  hold_id    uuid primary key,                             -- the transaction that made it
  user_id    text not null,
  amount     bigint not null,
  captured   bigint not null default 0,
  released   bigint not null default 0,
  status     text not null default 'HELD',
  ends_at    timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint point_hold_holds_something check (amount > 0),
  constraint point_hold_status_is_known check (status in ('HELD', 'CAPTURED', 'RELEASED', 'EXPIRED')),
  constraint point_hold_parts_not_negative check (captured >= 0 and released >= 0),
  constraint point_hold_ends_whole check (captured + released = case status when 'HELD' then 0 else amount end),
  constraint point_hold_captured_iff_something_was check ((status = 'CAPTURED') = (captured > 0))
) with (fillfactor = 80);

-- a user's holds: those under way, and those whose time is up
create index point_holds_of_user on point_holds (user_id, ends_at) where status = 'HELD';
-- expiry: whose holds have ended. Says of ends_at what holds of every one, so that the planner cannot take it for a user's.
create index point_holds_ending on point_holds (ends_at) where status = 'HELD' and ends_at < 'infinity';
