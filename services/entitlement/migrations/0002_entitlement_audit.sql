-- Who changed what, and why: one small row per version of an entitlement, kept by the month and dropped by the month.
-- There is no default partition. A row without a month of its own fails its command, and with it the change: nothing takes
-- effect that the audit does not know. So months are made here, when a service starts, and every hour, two ahead.
create table entitlement_audit (
  user_id            text not null,
  stock_keeping_unit text not null,
  version            bigint not null,                      -- of the entitlement, after the change
  action             text not null,
  source             text not null,                        -- as in entitlements
  source_id          text not null,
  caller             text not null,                        -- whose API key it was
  event_id           uuid not null,                        -- of the event that told of it
  created_at         timestamptz not null default now(),   -- the entitlement's updated_at
  primary key (user_id, stock_keeping_unit, version, created_at), -- history: newest version first
  constraint entitlement_audit_action_is_known check (action in ('GRANT', 'REVOKE', 'EXPIRE'))
) partition by range (created_at);

-- Makes this month and those ahead, where they are missing. Months are UTC's, whatever the session's time zone is. A month
-- is made whole and then attached: `create table … partition of` would take a lock that every command waits for.
create function make_entitlement_audit_months(ahead int) returns void language plpgsql as $$
declare
  month timestamp;
  partition text;
begin
  for month in select date_trunc('month', now() at time zone 'UTC') + i * interval '1 month' from generate_series(0, ahead) i
  loop
    partition := 'entitlement_audit_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(partition) is not null;
    execute format('create table %I (like entitlement_audit including all)', partition);
    execute format('alter table entitlement_audit attach partition %I for values from (%L) to (%L)',
                   partition, month || '+00', month + interval '1 month' || '+00');
  end loop;
end $$;

select make_entitlement_audit_months(2);
