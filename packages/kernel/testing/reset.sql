-- Added to every test template after its migrations: `todoke_testing.reset()` puts a clone back into the state in which
-- it was made. It answers false, and the clone is dropped, when a test has changed more than rows.

create schema todoke_testing;

-- Every change of tables, functions or triggers since the template was made.
create table todoke_testing.ddl (tag text not null);

-- Tables that have rows from the start, each with a copy, and sequences that have been used.
create table todoke_testing.initial_rows (original oid not null, copy oid not null, columns text not null);
create table todoke_testing.initial_sequences (sequence oid not null, last_value bigint);

create view todoke_testing.own_relations as
  select c.oid, c.relkind
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'todoke_testing')
     and n.nspname not like 'pg_temp%' and n.nspname not like 'pg_toast_temp%';

do $$
declare
  original oid;
  copy text;
begin
  for original in
    select oid from todoke_testing.own_relations where relkind = 'r' and pg_relation_size(oid) > 0
  loop
    copy := format('todoke_testing.rows_%s', original);
    execute format('create table %s as table %s', copy, original::regclass);
    insert into todoke_testing.initial_rows
    select original, copy::regclass, string_agg(quote_ident(attname), ', ' order by attnum)
      from pg_attribute
     where attrelid = original and attnum > 0 and not attisdropped and attgenerated = '';
  end loop;
  insert into todoke_testing.initial_sequences
  select oid, pg_sequence_last_value(oid) from todoke_testing.own_relations where relkind = 'S';
end $$;

create function todoke_testing.reset() returns boolean
language plpgsql
set session_replication_role = replica -- no triggers, foreign keys included
as $$
declare
  filled text;
  r record;
begin
  if exists (select from todoke_testing.ddl)
     or exists (select from pg_statistic where starelid in (select oid from todoke_testing.own_relations))
     or exists (select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
                 where d.datname = current_database()) then
    return false;
  end if;
  select string_agg(oid::regclass::text, ', ') into filled
    from todoke_testing.own_relations where relkind = 'r' and pg_relation_size(oid) > 0;
  if filled is not null then
    execute 'truncate ' || filled || ' cascade';
  end if;
  for r in select original::regclass as original, copy::regclass as copy, columns from todoke_testing.initial_rows loop
    execute format('insert into %s (%s) overriding system value select %2$s from %3$s', r.original, r.columns, r.copy);
  end loop;
  for r in
    select sequence, s.seqstart, i.last_value
      from todoke_testing.initial_sequences i join pg_sequence s on s.seqrelid = i.sequence
     where pg_sequence_last_value(i.sequence) is distinct from i.last_value
  loop
    perform setval(r.sequence::regclass, coalesce(r.last_value, r.seqstart), r.last_value is not null);
  end loop;
  return true;
end $$;

create function todoke_testing.note_ddl() returns event_trigger
language plpgsql security definer
as $$
begin
  insert into todoke_testing.ddl values (tg_tag);
end $$;

create event trigger todoke_testing_ddl on ddl_command_end execute function todoke_testing.note_ddl();
