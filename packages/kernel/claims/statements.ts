/**
 * The statements of the claim engine, written once for any described table.
 *
 * Each is one round trip and one transaction. A claim picks its rows in a materialized CTE: `in (select … limit n)` may
 * be run once per row and claim far more than n. Rows that are ready and rows whose lease lapsed are two small partial
 * indexes and two scans; an `or` over one big index would read every finished row.
 */
import type { DescribedTable } from "./table.ts";

// statement_timestamp() does not move while a statement runs, so an index can be searched by it; a lease is counted from
// clock_timestamp(), the moment at which it is given.
const now = "statement_timestamp()";

/** $1 limit, $2 worker, $3 lease in ms, $4 queue. */
export function claimSql(t: DescribedTable): string {
  const c = t.columns;
  return `
with lapsed as materialized (
  ${pick(t, `t.${c.status} = '${t.states.claimed}' and t.${c.leaseUntil} <= ${now}`)}
  order by t.${c.leaseUntil} limit $1 for update skip locked
),
${t.order ? orderedDue(t) : unorderedDue(t)},
claimed as (
  update ${t.table} t
     set ${c.status} = '${t.states.claimed}',
         ${c.attempts} = t.${c.attempts} + 1,
         ${c.epoch} = t.${c.epoch} + 1,
         ${c.lockedBy} = $2,
         ${c.lockedAt} = clock_timestamp(),
         ${c.leaseUntil} = clock_timestamp() + $3::float8 * interval '1 millisecond'
    from due
   where t.${t.key} = due.key
  returning t.*
)
select c.${t.key}::text as claim_key, c.${c.epoch}::text as claim_epoch, c.${c.attempts}::int as claim_attempt, ${t.read}
  from claimed c ${t.join ?? ""}
 ${t.order ? `order by c.${t.order.position}` : ""}`;
}

function unorderedDue(t: DescribedTable): string {
  const c = t.columns;
  return `ready as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} <= ${now}`)}
  order by t.${c.dueAt} limit $1 - (select count(*) from lapsed) for update skip locked
),
due as (select key from lapsed union all select key from ready)`;
}

/**
 * `waiting` are aggregates whose turn has not come: a row of theirs is being worked, is dead, or waits for its next try.
 * Leaving them out is what keeps one parked or busy aggregate from filling every batch. It cannot keep the order alone
 * (two claims may run at once and not see each other), so `due` asks of every candidate that no unfinished row stands
 * before it but those claimed along with it.
 */
function orderedDue(t: DescribedTable): string {
  const c = t.columns;
  const { aggregate, position } = t.order as NonNullable<DescribedTable["order"]>;
  const waits = (where: string) => `select t.${aggregate} from ${t.table} t where ${inQueue(t)}${where}`;
  return `waiting as materialized (
  ${waits(`t.${c.status} = '${t.states.claimed}' and t.${c.leaseUntil} > ${now}`)}
  union all
  ${waits(`t.${c.status} = '${t.states.dead}'`)}
  union all
  ${waits(`${isReady(t)} and t.${c.attempts} > 0 and t.${c.dueAt} > ${now}`)}
),
ready as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} <= ${now} and t.${aggregate} not in (select w.${aggregate} from waiting w)`)}
  order by t.${position} limit $1 - (select count(*) from lapsed) for update skip locked
),
candidate as materialized (select * from lapsed union all select * from ready),
due as materialized (
  select d.key from candidate d
   where not exists (
     select from ${t.table} t
      where ${inQueue(t)}t.${aggregate} = d.${aggregate} and t.${position} < d.${position}
        and t.${c.status} <> '${t.states.done}'
        and t.${t.key} not in (select o.key from candidate o)
   )
)`;
}

/**
 * $1 a JSON array of {key, epoch, outcome, in_ms, why}. All outcomes in one statement: a batch is settled in one round
 * trip however its rows fared. A row whose epoch has moved on is left alone and not returned.
 */
export function settleSql(t: DescribedTable): string {
  const c = t.columns;
  const { ready, done, dead, waiting = ready } = t.states;
  return `
with s as materialized (
  select * from jsonb_to_recordset($1::jsonb) as s(key ${t.keyType}, epoch bigint, outcome text, in_ms float8, why text)
),
settled as (
  update ${t.table} t
     set ${c.status} = case s.outcome when 'done' then '${done}' when 'dead' then '${dead}'
                                      when 'retry' then '${waiting}' else '${ready}' end,
         ${c.attempts} = t.${c.attempts} - (s.outcome = 'release')::int,
         ${c.dueAt} = case when s.outcome = 'retry' then clock_timestamp() + s.in_ms * interval '1 millisecond'
                           else t.${c.dueAt} end,
         ${c.doneAt} = case when s.outcome = 'done' then clock_timestamp() end,
         ${c.lastError} = coalesce(s.why, t.${c.lastError}),
         ${c.lockedBy} = null,
         ${c.lockedAt} = null,
         ${c.leaseUntil} = null
    from s
   where t.${t.key} = s.key and t.${c.epoch} = s.epoch and t.${c.status} = '${t.states.claimed}'
  returning t.*, s.outcome
)${t.whenDead ? `,\ndied as (select * from settled where outcome = 'dead'),\nbury as (${t.whenDead})` : ""}
select ${t.key}::text as key from settled`;
}

/** $1 a JSON array of {key, epoch}, $2 lease in ms. */
export function renewSql(t: DescribedTable): string {
  const c = t.columns;
  return `
with s as materialized (select * from jsonb_to_recordset($1::jsonb) as s(key ${t.keyType}, epoch bigint))
update ${t.table} t
   set ${c.leaseUntil} = clock_timestamp() + $2::float8 * interval '1 millisecond'
  from s
 where t.${t.key} = s.key and t.${c.epoch} = s.epoch and t.${c.status} = '${t.states.claimed}'
returning t.${t.key}::text as key`;
}

/** $1 keys. */
export function redriveSql(t: DescribedTable): string {
  const c = t.columns;
  return `
update ${t.table} t
   set ${c.status} = '${t.states.ready}', ${c.attempts} = 0, ${c.dueAt} = clock_timestamp()
 where t.${t.key} = any($1::${t.keyType}[]) and t.${c.status} = '${t.states.dead}'
returning t.${t.key}::text as key`;
}

function pick(t: DescribedTable, where: string): string {
  const order = t.order ? `, t.${t.order.aggregate}, t.${t.order.position}` : "";
  return `select t.${t.key} as key${order} from ${t.table} t where ${inQueue(t)}${where}`;
}

const inQueue = (t: DescribedTable) => (t.queue ? `t.${t.queue} = $4 and ` : "");

/** Written as `in (…)` only where there are two: a partial index is used when its predicate is met word for word. */
function isReady(t: DescribedTable): string {
  const { ready, waiting } = t.states;
  return waiting ? `t.${t.columns.status} in ('${ready}', '${waiting}')` : `t.${t.columns.status} = '${ready}'`;
}
