/**
 * The statements of the claim engine, written once for any described table.
 *
 * Each is one round trip and one transaction. A claim picks its rows in a materialized CTE: `in (select … limit n)` may
 * be run once per row and claim far more than n. Rows that are ready and rows whose lease lapsed are two small partial
 * indexes and two scans; an `or` over one big index would read every finished row.
 *
 * The table is never joined. A join leaves its order to the planner, which on an empty table walks a whole index and
 * compares all with all, and keeps that plan when the table has grown. `key = any(array)` and a scalar subquery with a
 * limit can only be probes (docs/adr/0003).
 */
import type { ClaimColumns, DescribedTable } from "./table.ts";

// statement_timestamp() does not move while a statement runs, so an index can be searched by it; a lease is counted from
// clock_timestamp(), the moment at which it is given.
const now = "statement_timestamp()";

/** $1 limit, $2 worker, $3 lease in ms, $4 queue. Whatever is due, and what dead workers held. */
export function claimSql(t: DescribedTable): string {
  if (t.claim?.expiredOnly) return `\nwith ${expiredLeases(t, "due")},\n${taken(t)}`;
  if (keepsState(t)) return `\nwith ${dueAndFree(t)},\n${taken(t)}`;
  return `
with ${expiredLeases(t, "lapsed")},
${t.order ? orderedDue(t) : unorderedDue(t)},
${taken(t)}`;
}

function expiredLeases(t: DescribedTable, name: string): string {
  const c = t.columns;
  return `${name} as materialized (
  ${pick(t, `t.${c.status} = '${t.states.claimed}' and t.${c.leaseUntil} <= ${now}`)}
  order by t.${c.leaseUntil} limit $1 for update skip locked
)`;
}

/** Rows keep their state while they are claimed, so ready ones and expired leases are one scan. */
const keepsState = (t: DescribedTable) => t.states.ready === t.states.claimed;

function dueAndFree(t: DescribedTable): string {
  const c = t.columns;
  return `due as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} <= ${now} and (t.${c.leaseUntil} is null or t.${c.leaseUntil} <= ${now})`)}
  order by t.${c.dueAt} limit $1 for update skip locked
)`;
}

/** Whether `claimFreshSql` can claim from this table. */
export const hasFresh = (t: DescribedTable) => !t.order && !keepsState(t) && !t.claim?.expiredOnly;

/**
 * As the claim, but only of what came due within the last ms: $4, or $5 in a table with queues. For a worker that has had
 * all before: while some transaction is open for minutes, nothing that is finished can be cleaned out of the index, and
 * every claim that begins with the oldest entry walks over all of it. Not for a table with order.
 */
export function claimFreshSql(t: DescribedTable): string {
  const c = t.columns;
  const since = `${now} - ${t.queue ? "$5" : "$4"}::float8 * interval '1 millisecond'`;
  return `
with due as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} > ${since} and t.${c.dueAt} <= ${now}`)}
  order by t.${c.dueAt} limit $1 for update skip locked
),
${taken(t)}`;
}

/** Takes the rows that `due` names, and answers with them. */
function taken(t: DescribedTable): string {
  const c = t.columns;
  return `claimed as (
  update ${t.table} t
     set ${c.status} = '${t.states.claimed}',
         ${t.claim?.uncounted ? "" : `${c.attempts} = t.${c.attempts} + 1,`}
         ${c.epoch} = t.${c.epoch} + 1,
         ${c.lockedBy} = $2,
         ${c.lockedAt} = clock_timestamp(),
         ${c.leaseUntil} = clock_timestamp() + $3::float8 * interval '1 millisecond'
   where t.${t.key} = any(array(select key from due))
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
  // The order is for the planner: each of these has an index of its own, and is not to be looked for in a bigger one.
  const waits = (where: string, order: string) =>
    `(select t.${aggregate} from ${t.table} t where ${inQueue(t)}${where} order by t.${order})`;
  return `waiting as materialized (
  ${waits(`t.${c.status} = '${t.states.claimed}' and t.${c.leaseUntil} > ${now}`, c.leaseUntil)}
  union all
  ${waits(`t.${c.status} = '${t.states.dead}'`, position)}
  union all
  ${waits(`${isReady(t)} and t.${c.attempts} > 0 and t.${c.dueAt} > ${now}`, c.dueAt)}
),
ready as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} <= ${now} and t.${aggregate} not in (select w.${aggregate} from waiting w)`)}
  order by t.${position} limit $1 - (select count(*) from lapsed) for update skip locked
),
candidate as materialized (select * from lapsed union all select * from ready),
due as materialized (
  select d.key from candidate d
   where (select true from ${t.table} t
           where ${inQueue(t)}t.${aggregate} = d.${aggregate} and t.${position} < d.${position}
             ${isUnfinished(t)}
             and t.${t.key} not in (select o.key from candidate o)
           limit 1) is null
)`;
}

/**
 * $1 the keys, $2 a JSON object {key: epoch}, $3 a JSON object {key: {outcome, in_ms, why}} of those that are not done. All
 * outcomes in one statement: a batch is settled in one round trip however its rows fared, and one in which all went well
 * pays nothing for the others. A row whose epoch has moved on is left alone and not returned.
 */
export function settleSql(t: DescribedTable): string {
  if (t.settledByJobsOnly) return endLeaseSql(t);
  const c = t.columns;
  const { ready, done, dead, waiting = ready } = t.states;
  const isDone = `not $3::jsonb ? t.${t.key}::text`;
  const said = (what: string) => `$3::jsonb -> t.${t.key}::text ->> '${what}'`;
  // A row that nobody comes after may be put off without having been tried; in an ordered table all behind it would wait.
  const putOff = t.order ? "" : ` or (${said("outcome")} = 'release' and (${said("in_ms")})::float8 > 0)`;
  const buried = `,\ndied as (select * from settled where ${c.status} = '${dead}'),\nbury as (${t.whenDead})`;
  const removed = `,\nremoved as (delete from ${t.table} t where ${isHeld(t)} and ${isDone} returning t.${t.key})`;
  return `
with settled as (
  update ${t.table} t
     set ${c.status} = case ${done ? `when ${isDone} then '${done}'` : ""} when ${said("outcome")} = 'dead' then '${dead}'
                            when ${said("outcome")} = 'retry' then '${waiting}' else '${ready}' end,
         ${done ? `${c.doneAt} = case when ${isDone} then clock_timestamp() end,` : ""}
         ${c.attempts} = case when ${said("outcome")} = 'release' then t.${c.attempts} - 1 else t.${c.attempts} end,
         ${c.dueAt} = case when ${said("outcome")} = 'retry'${putOff}
                           then clock_timestamp() + (${said("in_ms")})::float8 * interval '1 millisecond'
                           else t.${c.dueAt} end,
         ${c.lastError} = coalesce(${said("why")}, t.${c.lastError}),
         ${endOfLease(c)}
   where ${isHeld(t)} ${done ? "" : `and not (${isDone})`}
  returning t.*
)${t.whenDead ? buried : ""}${done ? "" : removed}
select ${t.key}::text as key from settled ${done ? "" : `union all select ${t.key}::text from removed`}`;
}

/** As `settleSql`; what the outcomes are, makes no difference. */
function endLeaseSql(t: DescribedTable): string {
  return `
update ${t.table} t
   set ${endOfLease(t.columns)}
 where ${isHeld(t)} and t.${t.columns.status} = '${t.states.claimed}' and $3::jsonb is not null
returning t.${t.key}::text as key`;
}

/** A set list. */
export const endOfLease = (c: ClaimColumns) => `${c.lockedBy} = null, ${c.lockedAt} = null, ${c.leaseUntil} = null`;

/** $1 the keys, $2 a JSON object {key: epoch}, $3 lease in ms. */
export function renewSql(t: DescribedTable): string {
  const c = t.columns;
  return `
update ${t.table} t
   set ${c.leaseUntil} = clock_timestamp() + $3::float8 * interval '1 millisecond'
 where ${isHeld(t)}
returning t.${t.key}::text as key`;
}

/**
 * $1 keys, $2 who asks for it, $3 why. The record is part of the statement, so that there is no redrive without one. The
 * rows are locked in one order, and whoever comes second finds nothing dead.
 */
export function redriveSql(t: DescribedTable): string {
  const c = t.columns;
  return `
with dead as materialized (
  select t.${t.key} as key, t.${c.attempts} as attempts, t.${c.lastError} as last_error
    from ${t.table} t
   where t.${t.key} = any($1::${t.keyType}[]) and t.${c.status} = '${t.states.dead}'
   order by t.${t.key} for update
),
recorded as (
  insert into redrives (of_table, of_key, redriven_by, reason, attempt_count, last_error)
  select '${t.table}', d.key::text, $2::text, $3::text, d.attempts, d.last_error from dead d order by d.key
)
update ${t.table} t
   set ${c.status} = '${t.states.ready}', ${c.attempts} = 0, ${c.dueAt} = clock_timestamp()
 where t.${t.key} = any(array(select key from dead))
returning t.${t.key}::text as key`;
}

function pick(t: DescribedTable, where: string): string {
  const order = t.order ? `, t.${t.order.aggregate}, t.${t.order.position}` : "";
  const further = t.claim?.where ? ` and ${t.claim.where}` : "";
  return `select t.${t.key} as key${order} from ${t.table} t where ${inQueue(t)}${where}${further}`;
}

/** In a table whose finished rows are deleted, every row is unfinished. */
const isUnfinished = (t: DescribedTable) => (t.states.done ? `and t.${t.columns.doneAt} is null` : "");

const inQueue = (t: DescribedTable) => (t.queue ? `t.${t.queue} = $4 and ` : "");

/** The fence: the row is claimed, and by the claim that is named. */
const isHeld = ({ key, keyType, columns: c }: DescribedTable) =>
  `t.${key} = any($1::${keyType}[]) and t.${c.leaseUntil} is not null
   and t.${c.epoch} = ($2::jsonb ->> t.${key}::text)::bigint`;

/** Written as `in (…)` only where there are two: a partial index is used when its predicate is met word for word. */
function isReady(t: DescribedTable): string {
  const { ready, waiting } = t.states;
  return waiting ? `t.${t.columns.status} in ('${ready}', '${waiting}')` : `t.${t.columns.status} = '${ready}'`;
}
