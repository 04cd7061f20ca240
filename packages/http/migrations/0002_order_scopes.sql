-- Two more scopes: to see the orders of all callers, and to let trading go on that another caller has stopped.
alter table api_keys
  drop constraint if exists api_key_scopes_are_known,
  add constraint api_key_scopes_are_known check (
    cardinality(scopes) > 0 and scopes <@ array['entitlements:write', 'points:write', 'orders:write', 'orders:read-all',
                                                'orders:resume', 'read']);
