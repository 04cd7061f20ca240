-- Back-ends may join queues for their users, see the orders of all callers, and let trading go on that another caller has
-- stopped. The list is that of `scopes` in callers.ts.
alter table api_keys
  drop constraint if exists api_key_scopes_are_known,
  add constraint api_key_scopes_are_known check (
    cardinality(scopes) > 0
    and scopes <@ array['entitlements:write', 'points:write', 'orders:write', 'orders:read-all', 'orders:resume',
                        'matchmaking:write', 'read']);
