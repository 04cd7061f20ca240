-- The API keys of back-ends, known by their SHA-256 alone: whoever reads this table can call nothing with it. Few, small,
-- and kept: a key that was revoked or has run out still says whose it was, who made it and who ended it.
create table api_keys (
  key_id         uuid primary key,
  holder         text not null,                            -- the caller in every idempotency scope; may have several keys
  scopes         text[] not null,
  sha256         bytea not null,
  created_at     timestamptz not null default now(),
  created_by     text not null,
  expires_at     timestamptz,
  revoked_at     timestamptz,
  revoked_by     text,
  revoked_reason text,
  last_used_at   timestamptz,                              -- to about a minute
  -- every request that no cache answers: whose key is it
  constraint api_keys_one_per_secret unique (sha256),
  constraint api_key_hash_is_whole check (length(sha256) = 32),
  -- without : and space, so that no holder can pass for a user or a service
  constraint api_key_holder_is_a_name check (holder ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  constraint api_key_scopes_are_known check (
    cardinality(scopes) > 0 and scopes <@ array['entitlements:write', 'points:write', 'orders:write', 'read']),
  constraint api_key_says_who_made_it check (created_by <> '' and length(created_by) <= 128),
  constraint api_key_expires_after_it_is_made check (expires_at > created_at),
  constraint api_key_revoked_by_somebody check ((revoked_at is null) = (revoked_by is null)),
  constraint api_key_says_who_revoked_it check (revoked_by <> '' and length(revoked_by) <= 128),
  constraint api_key_reason_is_short check (length(revoked_reason) <= 500)
);

-- list and revoke: the keys of one holder
create index api_keys_of_holder on api_keys (holder, created_at);
