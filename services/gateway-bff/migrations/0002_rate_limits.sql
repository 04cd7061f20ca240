-- How far each limited key is used up. A key whose time has passed says no more than one that is not here.
--
-- Unlogged: a request waits for no disk, and counting writes next to no log. A server that crashes begins to count anew;
-- a process of ours that does forgets nothing.
create unlogged table rate_limits (
  key        text primary key,                             -- whose limit, of which policy
  used_until timestamptz not null                          -- not indexed, so that a row is rewritten on its own page
) with (
  fillfactor = 50,                                         -- rewritten by every request: leave room for it
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- Takes for many requests at once, each from all of its keys or from none, in their order; says how far each item's key
-- was ahead of the clock (microseconds) when its turn came. The arithmetic is that of limits/gcra.ts.
create function take_units(
  keys     text[],                                         -- each once
  ends     int[],                                          -- of each request, the place of its last item
  key_at   int[],                                          -- of each item: the place of its key,
  units    int[],                                          -- how many,
  each_us  bigint[],                                       -- how far one moves the key on,
  slack_us bigint[]                                        -- and how far ahead the key may be
) returns bigint[] language plpgsql as $$
declare
  until_each timestamptz[];
  now_at     timestamptz;
  used       bigint[];                                     -- by key: how far it is ahead, as the requests go by
  ahead      bigint[] := '{}';
  taken_from text[] := '{}';
  first      int := 1;
  last       int;
  fits       boolean;
begin
  -- What is missing is made before anything is locked, and both go by the order of the keys: nobody who holds a row that
  -- others can see waits for one that they made, so that no two processes wait for each other.
  insert into rate_limits (key, used_until)
  select each_key, clock_timestamp() from unnest(keys) each_key order by each_key
  on conflict do nothing;

  select array_agg(locked.used_until order by locked.place) into until_each
    from (select array_position(keys, l.key) as place, l.used_until
            from rate_limits l where l.key = any(keys) order by l.key for update) locked;
  if cardinality(until_each) is distinct from cardinality(keys) then
    raise exception 'a limit was removed by age while it was taken from' using errcode = 'serialization_failure';
  end if;

  now_at := clock_timestamp(); -- Not before: whoever held the rows has been counted at his time.
  select array_agg(greatest(0, (extract(epoch from u.used_until - now_at) * 1000000)::bigint) order by u.place)
    into used
    from unnest(until_each) with ordinality u(used_until, place);

  foreach last in array ends loop
    fits := true;
    for i in first..last loop
      -- No key can be further ahead than this. One that is was counted by a clock that has been set back since, or by
      -- another policy, and begins anew.
      ahead[i] := case when used[key_at[i]] <= slack_us[i] + each_us[i] then used[key_at[i]] else 0 end;
      fits := fits and ahead[i] + (units[i] - 1) * each_us[i] <= slack_us[i];
    end loop;
    for i in first..last loop
      exit when not fits;
      used[key_at[i]] := ahead[i] + units[i] * each_us[i];
      taken_from := taken_from || keys[key_at[i]];
    end loop;
    first := last + 1;
  end loop;

  update rate_limits l
     set used_until = now_at + used[array_position(keys, l.key)] * interval '1 microsecond'
   where l.key = any(taken_from);
  return ahead;
end $$;
