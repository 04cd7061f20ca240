-- What account last told of each user. A session counts only beside this row, and only as far as it says.
create table known_users (
  user_id         text primary key,
  status          text not null,
  roles           text[] not null,
  suspended_until timestamptz,                             -- null: until somebody ends the suspension
  account_version bigint not null,                         -- the user's version in account: a higher one wins, always
  constraint known_user_status_is_known check (status in ('ACTIVE', 'SUSPENDED', 'DELETED')),
  constraint known_user_until_only_if_suspended check (suspended_until is null or status = 'SUSPENDED'),
  constraint known_user_version_starts_at_1 check (account_version >= 1)
) with (fillfactor = 80);

-- Who is logged in. A session that ends is deleted; one whose time is over is found no more, and removed later.
create table sessions (
  session_id       uuid primary key,                       -- UUID v7: names the session in lists, and opens nothing
  token_sha256     bytea not null,                         -- of what the client holds; that itself is nowhere
  user_id          text not null references known_users,
  client           text not null,
  issuer           text not null,                          -- whose log-in it was, so that a log-out there can end it here
  subject          text not null,
  provider_session text,
  user_agent       text,
  provider_tokens  bytea not null,                         -- AES-256-GCM, bound to this session_id
  refresh_due_at   timestamptz,                            -- while somebody refreshes: when their turn is over; null: never
  refresh_epoch    bigint not null default 0,              -- the fence: another number at every turn
  created_at       timestamptz not null,
  last_seen_at     timestamptz not null,                   -- raised only when it is a twentieth of the idle time old
  ends_at          timestamptz not null,                   -- the end by its age; it ends sooner when it is not used
  constraint session_token_once unique (token_sha256),
  constraint session_token_is_a_sha256 check (octet_length(token_sha256) = 32),
  constraint session_client_is_known check (client in ('browser', 'native')),
  constraint session_names_are_short check (
    greatest(octet_length(issuer), octet_length(subject), octet_length(provider_session)) <= 1024),
  constraint session_user_agent_is_short check (char_length(user_agent) <= 200),
  constraint session_ends_after_its_begin check (ends_at > created_at)
) with (fillfactor = 70);                                  -- rewritten while it is used: leave room on its page

-- What is encrypted cannot be made smaller, and is not rewritten when the session is used.
alter table sessions alter column provider_tokens set storage external;

-- a user's list, the bound on sessions of one user, and the end of all of them
create index sessions_of_user on sessions (user_id, created_at);
-- log-out at the provider
create index sessions_of_subject on sessions (issuer, subject);
create index sessions_of_provider_session on sessions (issuer, provider_session) where provider_session is not null;
-- removal of what is over
create index sessions_by_end on sessions (ends_at);

-- What is handed out once: a log-in under way, a native client's code, the id of a log-out that was taken.
create table one_time (
  kind        text not null,
  name_sha256 bytea not null,                              -- whoever reads the table learns no name that could be taken
  value       bytea not null,                              -- AES-256-GCM, bound to kind and name
  expires_at  timestamptz not null,
  primary key (kind, name_sha256),
  constraint one_time_kind_is_known check (kind in ('login', 'native-code', 'logout')),
  constraint one_time_name_is_a_sha256 check (octet_length(name_sha256) = 32)
);

-- removal of what is over
create index one_time_by_end on one_time (expires_at);
