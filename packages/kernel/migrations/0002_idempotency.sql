-- The answer to every command that took effect. The row commits with the effect, so a retry finds it or the effect is not there.
create table idempotency_keys (
  scope                 text not null,                     -- caller and route: one caller's key never meets another's
  idem_key              text not null,
  request_hash          bytea not null,                    -- SHA-256 of the canonical body
  response_status       smallint,                          -- null only inside the transaction that is carrying it out
  response_content_type text,
  response_body         bytea,                             -- the very bytes that were sent
  created_at            timestamptz not null default now(),
  expires_at            timestamptz not null,
  primary key (scope, idem_key),
  -- Not as one pattern with {1,255}: PostgreSQL takes 0.1 ms for that, longer than for the rest of the row.
  constraint idempotency_key_is_visible_ascii check (idem_key <> '' and length(idem_key) <= 255 and idem_key !~ '[^\x21-\x7e]'),
  constraint idempotency_hash_is_sha256 check (octet_length(request_hash) = 32)
);

-- retention
create index idempotency_keys_expiry on idempotency_keys (expires_at);
