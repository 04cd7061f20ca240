-- Up to which version account has told of a user here: an event that comes late, or again, ends no ticket that was taken since.
-- Only of users whom account has told of more than once: before a first version there is none that could come late.
create table user_versions (
  user_id         text primary key,
  account_version bigint not null,                         -- the user's version in account: a higher one wins, always
  constraint user_version_starts_at_1 check (account_version >= 1)
) with (fillfactor = 80);
