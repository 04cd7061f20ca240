-- Who may use what. One row per user and product for ever: a revoke keeps the row and its version.
create table entitlements (
  user_id            text not null,
  stock_keeping_unit text not null,
  status             text not null,
  version            bigint not null default 1,            -- rises by one with every grant, revoke and expiry
  source             text not null,                        -- why it is as it is: purchase, refund
  source_id          text not null,                        -- which purchase
  expires_at         timestamptz,                          -- null: for ever
  created_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now(),
  primary key (user_id, stock_keeping_unit),
  constraint entitlement_status_is_known check (status in ('ACTIVE', 'REVOKED', 'EXPIRED')),
  constraint entitlement_expired_by_its_time check (status <> 'EXPIRED' or expires_at is not null),
  constraint entitlement_revoked_for_ever check (status <> 'REVOKED' or expires_at is null),
  constraint entitlement_version_starts_at_1 check (version >= 1)
) with (fillfactor = 80);

-- expiry: what has run out and is not told yet
create index entitlements_running_out on entitlements (expires_at) where status = 'ACTIVE' and expires_at is not null;
