-- The service creates and drops the partitions of its audit, which only the owner of the tables may do. Both functions run
-- with the rights of their owner, so that the service can run as a role that owns nothing
-- (deploy/postgres/entitlement-role.sql, docs/adr/0052). Their bounds hold for every caller: at most a year ahead, and a full
-- month is always kept.
create or replace function make_entitlement_audit_months(ahead int) returns void language plpgsql security definer as $$
declare
  month timestamp;
  partition text;
begin
  for month in select date_trunc('month', now() at time zone 'UTC') + i * interval '1 month'
                 from generate_series(0, least(ahead, 12)) i
  loop
    partition := 'entitlement_audit_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(partition) is not null;
    execute format('create table %I (like entitlement_audit including all)', partition);
    execute format('alter table entitlement_audit attach partition %I for values from (%L) to (%L)',
                   partition, month || '+00', month + interval '1 month' || '+00');
  end loop;
end $$;

-- Drops the partitions that ended more than `keep` months ago, and returns their names.
create or replace function drop_entitlement_audit_months(keep int) returns setof text language plpgsql security definer as $$
declare
  partition text;
begin
  if keep is null or keep < 1 then
    raise exception 'the audit keeps at least one full month' using errcode = 'invalid_parameter_value';
  end if;
  for partition in
    select relname from pg_inherits join pg_class on pg_class.oid = inhrelid
     where inhparent = 'entitlement_audit'::regclass and relname ~ '^entitlement_audit_\d{4}_\d{2}$'
       and to_date(right(relname, 7), 'YYYY_MM')
           < date_trunc('month', now() at time zone 'UTC') - keep * interval '1 month'
     order by relname
  loop
    execute format('drop table %I', partition);
    return next partition;
  end loop;
end $$;

-- Names inside the functions are found in this schema only, whatever the caller's search_path is; temporary tables come last.
do $$
declare
  own text;
begin
  foreach own in array array['make_entitlement_audit_months(int)', 'drop_entitlement_audit_months(int)'] loop
    execute format('alter function %s set search_path to %I, pg_temp', own, current_schema());
    execute format('revoke execute on function %s from public', own);
  end loop;
end $$;
