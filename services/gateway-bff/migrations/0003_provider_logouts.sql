-- Log-outs that the identity provider announced, kept for longer than a log-in takes: a session that is created after its
-- log-out was announced would live on, because the deletion could not see it.
create table provider_logouts (
  name_sha256 bytea primary key,                           -- of the issuer and its session (sid), or the issuer and a subject
  ended_at    timestamptz not null,                        -- of a subject only log-ins that began before this are refused
  expires_at  timestamptz not null,
  constraint provider_logout_name_is_a_sha256 check (octet_length(name_sha256) = 32)
);

-- removal of what has expired
create index provider_logouts_by_end on provider_logouts (expires_at);
