/**
 * Completes due rows in the transaction that does their work: they are done when it commits, and untouched if it does not.
 *
 * A claim and a settlement are two row versions and two commits, and leave a trace of a worker that dies between them. Work
 * that is wholly in this transaction needs none of that: its effect and the end of the row are one commit. Rows that have
 * failed before are left to claims, which count attempts and delay retries (docs/adr/0063).
 */
import { hash } from "node:crypto";
import { identifier } from "../db/pool.ts";
import type { Tx } from "../db/transaction.ts";
import { isReady, isUnfinished } from "./statements.ts";
import { type ClaimTableSpec, type ResolvedSpec, resolveSpec } from "./table.ts";

export interface CompletionRequest {
  /** Never more rows than this. */
  readonly limit: number;
  /** The value of the table's queue column, if it has one. */
  readonly queue?: string;
  /** As in `ClaimRequest`. Ordered tables ignore it. */
  readonly dueWithinMs?: number;
}

/** In an ordered table, rows of one aggregate come in their order, and none before an earlier one that is not done. */
export type Completion<Row> = (tx: Tx, request: CompletionRequest) => Promise<readonly Row[]>;

export interface CompletionOptions {
  /** The schema of the table, if it is not that of the transaction. */
  readonly schema?: string;
  /** Deletes the rows instead of keeping them as done. */
  readonly deletes?: boolean;
}

/** Builds the statement that completes rows of a claimed table. `Row` is what the spec's select list returns. */
export function createCompletion<Row extends object>(
  table: ClaimTableSpec,
  options: CompletionOptions = {},
): Completion<Row> {
  const spec = resolveSpec(table);
  if (spec.claim || spec.settledByJobsOnly || spec.states.ready === spec.states.claimed)
    throw new Error(`${spec.table}: rows with claim rules of their own cannot be completed`);
  const text = completeSql(spec, options);
  // A connection may complete rows of the same table in several schemas. Of a name, PostgreSQL reads 63 bytes.
  const suffix = options.schema === undefined ? "" : ` ${hash("sha256", options.schema, "hex").slice(0, 8)}`;
  const name = `complete ${spec.name ?? `${spec.table} ${spec.key}`}${suffix}`;
  return async (tx, { limit, queue, dueWithinMs = centuryMs }) => {
    const values = [limit, ...(spec.queue ? [queue] : []), ...(spec.order ? [] : [dueWithinMs])];
    return (await tx.query<Row>({ name, text, values })).rows;
  };
}

/** Longer ago than any row became due. */
const centuryMs = 100 * 365 * 24 * 60 * 60 * 1_000;

const now = "statement_timestamp()";

/** $1 limit, then the queue of a table with queues, then the milliseconds of an unordered table. */
export function completeSql(
  t: ResolvedSpec,
  { schema, deletes = t.states.done === undefined }: CompletionOptions,
): string {
  const c = t.columns;
  const table = schema === undefined ? t.table : `${identifier(schema)}.${t.table}`;
  const parts = { table, inQueue: t.queue ? `t.${t.queue} = $2 and ` : "" };
  const finish = deletes
    ? `delete from ${table} t where t.${t.key} = any(array(select key from due)) returning t.*`
    : `update ${table} t
     set ${c.status} = '${t.states.done}', ${c.doneAt} = clock_timestamp(), ${c.attempts} = t.${c.attempts} + 1,
         ${c.epoch} = t.${c.epoch} + 1, ${c.lastError} = null
   where t.${t.key} = any(array(select key from due))
  returning t.*`;
  return `
with ${t.order ? completableInOrder(t, parts) : completable(t, parts)},
completed as (
  ${finish}
)
select ${t.select} from completed c ${t.join ?? ""} ${t.order ? `order by c.${t.order.position}` : ""}`;
}

interface Parts {
  readonly table: string;
  readonly inQueue: string;
}

const isNew = (t: ResolvedSpec) => `${isReady(t)} and t.${t.columns.attempts} = 0 and t.${t.columns.dueAt} <= ${now}`;

function completable(t: ResolvedSpec, { table, inQueue }: Parts): string {
  const dueAt = `t.${t.columns.dueAt}`;
  const since = `${now} - ${t.queue ? "$3" : "$2"}::float8 * interval '1 millisecond'`;
  return `due as materialized (
  select t.${t.key} as key from ${table} t where ${inQueue}${isNew(t)} and ${dueAt} > ${since}
   order by ${dueAt} limit $1 for update skip locked
)`;
}

/** The same two conditions as for claims: skip blocked aggregates, and complete no row past an unfinished one. */
function completableInOrder(t: ResolvedSpec, { table, inQueue }: Parts): string {
  const c = t.columns;
  const { aggregate, position } = t.order as NonNullable<ResolvedSpec["order"]>;
  const aggregates = (where: string, order: string) =>
    `(select t.${aggregate} from ${table} t where ${inQueue}${where} order by t.${order})`;
  return `blocked_aggregates as materialized (
  ${aggregates(`t.${c.status} = '${t.states.claimed}'`, c.leaseUntil)}
  union all
  ${aggregates(`t.${c.status} = '${t.states.dead}'`, position)}
  union all
  ${aggregates(`${isReady(t)} and t.${c.attempts} > 0`, c.dueAt)}
),
candidates as materialized (
  select t.${t.key} as key, t.${aggregate}, t.${position} from ${table} t
   where ${inQueue}${isNew(t)} and t.${aggregate} not in (select b.${aggregate} from blocked_aggregates b)
   order by t.${position} limit $1 for update skip locked
),
due as materialized (
  select d.key from candidates d
   where (select true from ${table} t
           where ${inQueue}t.${aggregate} = d.${aggregate} and t.${position} < d.${position} ${isUnfinished(t)}
             and t.${t.key} not in (select o.key from candidates o)
           limit 1) is null
)`;
}
