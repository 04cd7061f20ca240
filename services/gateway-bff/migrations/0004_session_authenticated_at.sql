-- When the user last proved who they are at the provider (`auth_time`); null where it did not say.
alter table sessions add column if not exists authenticated_at timestamptz;
