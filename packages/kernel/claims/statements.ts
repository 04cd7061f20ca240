/**
 * The SQL of claims, generated for any table spec.
 *
 * Each statement is one round trip and one transaction. A claim picks its rows in a materialized CTE, because PostgreSQL
 * may run `in (select … limit n)` once per row and claim far more than n. Ready rows and expired leases are two scans of
 * two small partial indexes; an `or` over one index would read every finished row.
 *
 * The table is never joined. The planner chooses the order of a join, and on an empty table it chooses a full index walk,
 * which it keeps when the table has grown. `key = any(array)` and a scalar subquery with a limit are always index probes
 * (docs/adr/0003).
 */
import type { ClaimColumns, ResolvedSpec } from "./table.ts";

// statement_timestamp() is constant within a statement, so an index can be searched by it. A lease is counted from
// clock_timestamp(), the moment at which it is given.
const now = "statement_timestamp()";

/** Claims due rows and expired leases. $1 limit, $2 worker, $3 lease in ms, $4 queue, then the values of `claim.where`. */
export function claimSql(t: ResolvedSpec): string {
  if (t.claim?.expiredOnly) return `\nwith ${expiredLeases(t, "due")},\n${claimDueRows(t)}`;
  if (keepsState(t) || t.claim?.orderBy) return `\nwith ${readyAndUnleased(t)},\n${claimDueRows(t)}`;
  return `
with ${expiredLeases(t, "expired_leases")},
${t.order ? orderedDue(t) : unorderedDue(t)},
${claimDueRows(t)}`;
}

function expiredLeases(t: ResolvedSpec, name: string): string {
  const c = t.columns;
  return `${name} as materialized (
  ${pick(t, `t.${c.status} = '${t.states.claimed}' and t.${c.leaseUntil} <= ${now}`)}
  order by t.${c.leaseUntil} limit $1 for update skip locked
)`;
}

/** The state does not change while a row is claimed, so ready rows and expired leases are one scan. */
const keepsState = (t: ResolvedSpec) => t.states.ready === t.states.claimed;

function readyAndUnleased(t: ResolvedSpec): string {
  const c = t.columns;
  const isDue = t.claim?.orderBy ? "" : `and t.${c.dueAt} <= ${now} `;
  return `due as materialized (
  ${pick(t, `${isReady(t)} ${isDue}and (t.${c.leaseUntil} is null or t.${c.leaseUntil} <= ${now})`)}
  order by ${columnList("t", t.claim?.orderBy ?? [c.dueAt])} limit $1 for update skip locked
)`;
}

const columnList = (row: string, columns: readonly string[]) => columns.map((column) => `${row}.${column}`).join(", ");

/** Whether `claimRecentSql` works for this table. */
export const canClaimRecent = (t: ResolvedSpec) =>
  !t.order && !keepsState(t) && !t.claim?.expiredOnly && !t.claim?.orderBy;

/**
 * Claims rows that became due within the last ms ($4, or $5 in a table with queues), for a worker that has drained the
 * table before. While a transaction stays open for minutes, finished rows cannot be removed from the index, and a claim
 * that starts at the oldest entry walks over all of them.
 */
export function claimRecentSql(t: ResolvedSpec): string {
  const c = t.columns;
  const since = `${now} - ${t.queue ? "$5" : "$4"}::float8 * interval '1 millisecond'`;
  return `
with due as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} > ${since} and t.${c.dueAt} <= ${now}`)}
  order by t.${c.dueAt} limit $1 for update skip locked
),
${claimDueRows(t)}`;
}

/** Claims the rows whose keys are in the CTE `due`, and selects them. */
function claimDueRows(t: ResolvedSpec): string {
  const c = t.columns;
  const order = t.order ? [t.order.position] : t.claim?.orderBy;
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
select c.${t.key}::text as claim_key, c.${c.epoch}::text as claim_epoch, c.${c.attempts}::int as claim_attempt, ${t.select}
  from claimed c ${t.join ?? ""}
 ${order ? `order by ${columnList("c", order)}` : ""}`;
}

function unorderedDue(t: ResolvedSpec): string {
  const c = t.columns;
  return `ready as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} <= ${now}`)}
  order by t.${c.dueAt} limit $1 - (select count(*) from expired_leases) for update skip locked
),
due as (select key from expired_leases union all select key from ready)`;
}

/**
 * `blocked_aggregates` have a row that is claimed, dead or waiting for its retry. Excluding them keeps one parked or busy
 * aggregate from filling every batch. It is not enough to keep the order, because two concurrent claims do not see each
 * other. So `due` also requires that no unfinished row precedes a candidate, except rows claimed together with it.
 */
function orderedDue(t: ResolvedSpec): string {
  const c = t.columns;
  const { aggregate, position } = t.order as NonNullable<ResolvedSpec["order"]>;
  // `order by` makes the planner use the small index of each condition instead of a larger one.
  const aggregates = (where: string, order: string) =>
    `(select t.${aggregate} from ${t.table} t where ${inQueue(t)}${where} order by t.${order})`;
  return `blocked_aggregates as materialized (
  ${aggregates(`t.${c.status} = '${t.states.claimed}' and t.${c.leaseUntil} > ${now}`, c.leaseUntil)}
  union all
  ${aggregates(`t.${c.status} = '${t.states.dead}'`, position)}
  union all
  ${aggregates(`${isReady(t)} and t.${c.attempts} > 0 and t.${c.dueAt} > ${now}`, c.dueAt)}
),
ready as materialized (
  ${pick(t, `${isReady(t)} and t.${c.dueAt} <= ${now} and t.${aggregate} not in (select b.${aggregate} from blocked_aggregates b)`)}
  order by t.${position} limit $1 - (select count(*) from expired_leases) for update skip locked
),
candidates as materialized (select * from expired_leases union all select * from ready),
due as materialized (
  select d.key from candidates d
   where (select true from ${t.table} t
           where ${inQueue(t)}t.${aggregate} = d.${aggregate} and t.${position} < d.${position}
             ${isUnfinished(t)}
             and t.${t.key} not in (select o.key from candidates o)
           limit 1) is null
)`;
}

/**
 * Settles a batch. $1 keys, $2 a JSON object {key: epoch}, $3 a JSON object {key: {outcome, delay_ms, reason}} of the rows
 * that are not done, so that a batch in which all succeeded pays nothing for the other outcomes. A row whose epoch has
 * changed is neither updated nor returned.
 */
export function settleSql(t: ResolvedSpec): string {
  if (t.settledByJobsOnly) return endLeaseSql(t);
  const c = t.columns;
  const { ready, done, dead, waiting = ready } = t.states;
  const isDone = `not $3::jsonb ? t.${t.key}::text`;
  const field = (name: string) => `$3::jsonb -> t.${t.key}::text ->> '${name}'`;
  // Only an unordered table delays a released row; in an ordered one the delay would block the rest of the aggregate.
  const isDelayedRelease = t.order
    ? ""
    : ` or (${field("outcome")} = 'release' and (${field("delay_ms")})::float8 > 0)`;
  const onDead = `,\ndead_rows as (select * from settled where ${c.status} = '${dead}'),\non_dead as (${t.onDeadSql})`;
  const deleted = `,\ndeleted as (delete from ${t.table} t where ${isOurClaim(t)} and ${isDone} returning t.${t.key})`;
  return `
with settled as (
  update ${t.table} t
     set ${c.status} = case ${done ? `when ${isDone} then '${done}'` : ""} when ${field("outcome")} = 'dead' then '${dead}'
                            when ${field("outcome")} = 'retry' then '${waiting}' else '${ready}' end,
         ${done ? `${c.doneAt} = case when ${isDone} then clock_timestamp() end,` : ""}
         ${c.attempts} = case when ${field("outcome")} = 'release' then t.${c.attempts} - 1 else t.${c.attempts} end,
         ${c.dueAt} = case when ${field("outcome")} = 'retry'${isDelayedRelease}
                           then clock_timestamp() + (${field("delay_ms")})::float8 * interval '1 millisecond'
                           -- It is due no more: the column has the time of its death.
                           when ${field("outcome")} = 'dead' then clock_timestamp()
                           else t.${c.dueAt} end,
         ${c.lastError} = case when not (${isDone}) then coalesce(${field("reason")}, t.${c.lastError}) end,
         ${endLeaseSet(c)}
   where ${isOurClaim(t)} ${done ? "" : `and not (${isDone})`}
  returning t.*
)${t.onDeadSql ? onDead : ""}${done ? "" : deleted}
select ${t.key}::text as key from settled ${done ? "" : `union all select ${t.key}::text from deleted`}`;
}

/** Takes the parameters of `settleSql` and ignores the outcomes. */
function endLeaseSql(t: ResolvedSpec): string {
  return `
update ${t.table} t
   set ${endLeaseSet(t.columns)}
 where ${isOurClaim(t)} and t.${t.columns.status} = '${t.states.claimed}' and $3::jsonb is not null
returning t.${t.key}::text as key`;
}

/** A SET list. */
export const endLeaseSet = (c: ClaimColumns) => `${c.lockedBy} = null, ${c.lockedAt} = null, ${c.leaseUntil} = null`;

/** $1 keys, $2 a JSON object {key: epoch}, $3 lease in ms. */
export function renewSql(t: ResolvedSpec): string {
  const c = t.columns;
  return `
update ${t.table} t
   set ${c.leaseUntil} = clock_timestamp() + $3::float8 * interval '1 millisecond'
 where ${isOurClaim(t)}
returning t.${t.key}::text as key`;
}

/**
 * $1 keys, $2 who asks, $3 the reason, $4 the queue or null for all. The same statement writes the record, so no redrive
 * lacks one. Rows are locked in key order; of two concurrent redrives the second finds no dead row.
 */
export function redriveSql(t: ResolvedSpec): string {
  const c = t.columns;
  return `
with dead as materialized (
  select t.${t.key} as key, t.${c.attempts} as attempts, t.${c.lastError} as last_error
    from ${t.table} t
   where t.${t.key} = any($1::${t.keyType}[]) and t.${c.status} = '${t.states.dead}'
     ${t.queue ? `and ($4::text is null or t.${t.queue} = $4)` : ""}
   order by t.${t.key} for update
),
insert_redrives as (
  insert into redrives (of_table, of_key, redriven_by, reason, attempt_count, last_error)
  select '${t.table}', d.key::text, $2::text, $3::text, d.attempts, d.last_error from dead d order by d.key
)
update ${t.table} t
   set ${c.status} = '${t.states.ready}', ${c.attempts} = 0, ${c.dueAt} = clock_timestamp()
 where t.${t.key} = any(array(select key from dead))
returning t.${t.key}::text as key`;
}

/**
 * Deletes dead rows. The parameters and the lock order are those of `redriveSql`: of a concurrent redrive and discard of one row, the
 * second finds no dead row. The record keeps the row.
 */
export function discardSql(t: ResolvedSpec): string {
  const c = t.columns;
  return `
with dead as materialized (
  select t.${t.key} as key, t.${c.attempts} as attempts, t.${c.lastError} as last_error, to_jsonb(t) as discarded
    from ${t.table} t
   where t.${t.key} = any($1::${t.keyType}[]) and t.${c.status} = '${t.states.dead}'
     ${t.queue ? `and ($4::text is null or t.${t.queue} = $4)` : ""}
   order by t.${t.key} for update
),
insert_redrives as (
  insert into redrives (of_table, of_key, redriven_by, reason, attempt_count, last_error, action, discarded)
  select '${t.table}', d.key::text, $2::text, $3::text, d.attempts, d.last_error, 'discard', d.discarded
    from dead d order by d.key
)
delete from ${t.table} t where t.${t.key} = any(array(select key from dead))
returning t.${t.key}::text as key`;
}

function pick(t: ResolvedSpec, where: string): string {
  const order = t.order ? `, t.${t.order.aggregate}, t.${t.order.position}` : "";
  const extra = t.claim?.where ? ` and ${t.claim.where}` : "";
  return `select t.${t.key} as key${order} from ${t.table} t where ${inQueue(t)}${where}${extra}`;
}

/** In a table whose finished rows are deleted, every row is unfinished. */
export const isUnfinished = (t: ResolvedSpec) => (t.states.done ? `and t.${t.columns.doneAt} is null` : "");

const inQueue = (t: ResolvedSpec) => (t.queue ? `t.${t.queue} = $4 and ` : "");

/** The fence: the row is claimed, and its epoch is the one of this claim. */
const isOurClaim = ({ key, keyType, columns: c }: ResolvedSpec) =>
  `t.${key} = any($1::${keyType}[]) and t.${c.leaseUntil} is not null
   and t.${c.epoch} = ($2::jsonb ->> t.${key}::text)::bigint`;

/** `in (…)` only for two states: PostgreSQL uses a partial index when the query repeats its predicate. */
export function isReady(t: ResolvedSpec): string {
  const { ready, waiting } = t.states;
  return waiting ? `t.${t.columns.status} in ('${ready}', '${waiting}')` : `t.${t.columns.status} = '${ready}'`;
}
