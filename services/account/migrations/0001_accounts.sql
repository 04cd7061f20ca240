-- Who there is. One row per user for ever: a deletion keeps the id and the version, and nothing about the person.
create table users (
  user_id          text primary key,                       -- UUID v7, made here; never used again
  status           text not null default 'ACTIVE',
  version          bigint not null default 1,              -- rises by one with every change of the user, roles included
  display_name     text,
  locale           text,                                   -- BCP 47
  email            text,                                   -- as a provider last told it; it names nobody
  suspended_reason text,
  suspended_until  timestamptz,                            -- null: until somebody reinstates the user
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now(),
  constraint user_status_is_known check (status in ('ACTIVE', 'SUSPENDED', 'DELETED')),
  constraint user_suspended_for_a_reason check ((status = 'SUSPENDED') = (suspended_reason is not null)),
  constraint user_suspended_until_while_suspended check (status = 'SUSPENDED' or suspended_until is null),
  constraint user_deleted_is_nobody
    check (status <> 'DELETED' or (display_name is null and locale is null and email is null)),
  constraint user_version_starts_at_1 check (version >= 1)
) with (fillfactor = 80);

-- an admin's search; log-ins never look here
create index users_email on users (lower(email), user_id);
-- expiry: suspensions that have run out and are not told yet
create index users_running_out on users (suspended_until) where status = 'SUSPENDED' and suspended_until is not null;

-- Whom a provider's word names: this key, and nothing that can change, decides who somebody is. The other columns are
-- what the provider last said, kept to see what has changed.
create table identities (
  provider       text not null,                            -- the issuer
  subject        text not null,
  user_id        text not null references users,
  email          text,
  email_verified boolean,
  display_name   text,
  locale         text,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  constraint identity_names_one_user primary key (provider, subject)
);

-- one user's identities: export and deletion
create index identities_user on identities (user_id);

-- What a user may do. Changed only while the user's row is locked, and then its version rises.
create table account_roles (
  user_id    text not null references users,
  role       text not null,
  granted_at timestamptz not null default now(),
  primary key (user_id, role),
  constraint account_role_is_known check (role in ('USER', 'ADMIN'))
);

-- is there another admin?
create index account_roles_admins on account_roles (user_id) where role = 'ADMIN';

-- Who changed what, and why: one row per version of a user, from the first. `before` and `after` have the fields that
-- changed; of a deleted user they say nothing about the person.
create table audit_logs (
  audit_id   bigint generated always as identity primary key,
  user_id    text not null references users,               -- whom it is about
  version    bigint not null,                              -- of the user, after the change
  actor      text not null,                                -- user:<id>, service:<name>, or todoke:<part of us>
  action     text not null,
  reason     text,
  before     jsonb not null,
  after      jsonb not null,
  created_at timestamptz not null default now(),           -- the user's updated_at
  constraint audit_one_row_per_version unique (user_id, version),
  constraint audit_action_is_known
    check (action in ('CREATE', 'UPDATE', 'SUSPEND', 'REINSTATE', 'GRANT_ROLE', 'REVOKE_ROLE', 'DELETE')),
  constraint audit_says_why check (action in ('CREATE', 'UPDATE') or coalesce(reason, '') <> '')
);

-- an admin's list, newest first: of one user, of one actor
create index audit_logs_user on audit_logs (user_id, audit_id);
create index audit_logs_actor on audit_logs (actor, audit_id);
