-- A back-end may join queues for its users. The list is that of `scopes` in callers.ts.
alter table api_keys
  drop constraint api_key_scopes_are_known,
  add constraint api_key_scopes_are_known check (
    cardinality(scopes) > 0
    and scopes <@ array['entitlements:write', 'points:write', 'orders:write', 'matchmaking:write', 'read']);
