-- A key may cancel the open orders of all callers. The list is that of `scopes` in callers.ts.
alter table api_keys
  drop constraint if exists api_key_scopes_are_known,
  add constraint api_key_scopes_are_known check (
    cardinality(scopes) > 0
    and scopes <@ array['entitlements:write', 'points:write', 'orders:write', 'orders:read-all', 'orders:resume',
                        'orders:cancel-all', 'matchmaking:write', 'read']);
