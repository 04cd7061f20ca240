/**
 * Finds the rows of a claimed table that users wait for: rows that no worker claims, rows that fail repeatedly, and aggregates
 * that are parked behind a dead row. For operators, on tables of any size: every part reads a partial index up to a bound.
 */
import type { Queryable } from "../db/index.ts";
import { type ClaimTableSpec, resolveSpec } from "./table.ts";

/** The work of one table that users wait for. Counts stop at `delayCountMax`. */
export interface Delays {
  readonly table: string;
  /** Rows that are due, or whose worker died, and that no worker has taken up for `lateMs`. */
  readonly late: number;
  /** How long the oldest of them has been due; 0 if there is none. */
  readonly oldestMs: number;
  /** Rows that failed `failuresMin` times or more, and are retried. */
  readonly failing: number;
  /** The error of one of them. */
  readonly lastError: string | null;
  /** Aggregates with rows that wait behind a dead one. */
  readonly parked: number;
}

/** A worker claims a due row within a second; the alerts allow a minute too. */
export const lateMs = 60_000;

/** One failure may be an accident, three are a cause. */
export const failuresMin = 3;

/** An operator acts on "10,000 or more" as on the exact number. */
export const delayCountMax = 10_000;

/** In a table with queues, `queue` selects one. */
export async function readDelays(db: Queryable, table: ClaimedSpec, queue?: string): Promise<Delays> {
  const values = queue === undefined ? [] : [queue];
  const { rows } = await db.query<Omit<Delays, "table">>(delaysSql(table, queue !== undefined), values);
  return { table: table.table, ...(rows[0] as Omit<Delays, "table">) };
}

type ClaimedSpec = Omit<ClaimTableSpec, "select">;

/** Rows are read in the order of an index of the claims, so that the bound also bounds what is read. */
export function delaysSql(table: ClaimedSpec, ofQueue: boolean): string {
  const t = resolveSpec({ ...table, select: "" });
  const { columns: c, states, order } = t;
  const inQueue = ofQueue ? `t.${t.queue} = $1 and ` : "";
  const by = (column: string) => `${t.queue && !ofQueue ? `t.${t.queue}, ` : ""}t.${column}`;
  const rows = (select: string, where: string, orderBy: string) =>
    `select ${select} from ${t.table} t where ${inQueue}${where} order by ${by(orderBy)} limit ${delayCountMax}`;
  const isLate = (column: string) => `${column} <= now() - ${lateMs} * interval '1 millisecond'`;
  const isReady = `t.${c.status} = '${states.ready}'`;
  const isParked = order
    ? `and r.aggregate not in (${rows(`t.${order.aggregate}`, `t.${c.status} = '${states.dead}'`, order.position)})`
    : "";
  const ready = order
    ? rows(`t.${c.dueAt} as since, t.${order.aggregate} as aggregate`, isReady, order.position)
    : rows(`t.${c.dueAt} as since`, `${isReady} and ${isLate(`t.${c.dueAt}`)}`, c.dueAt);
  const expired = rows(
    `t.${c.leaseUntil} as since`,
    `t.${c.status} = '${states.claimed}' and ${isLate(`t.${c.leaseUntil}`)}`,
    c.leaseUntil,
  );
  const failing = rows(
    `t.${c.attempts} as attempts, t.${c.lastError} as last_error`,
    `${isReady}${order ? ` and t.${c.attempts} > 0` : ""} and t.${c.dueAt} <= now() + interval '1 hour'`,
    c.dueAt,
  );
  const parked = order
    ? `(select count(distinct d.aggregate) from (${rows(
        `t.${order.aggregate} as aggregate, t.${order.position} as position${t.queue ? `, t.${t.queue} as queue` : ""}`,
        `t.${c.status} = '${states.dead}'`,
        order.position,
      )}) d where (select true from ${t.table} t
                    where ${t.queue ? `t.${t.queue} = d.queue and ` : ""}t.${order.aggregate} = d.aggregate
                      and t.${order.position} > d.position ${states.done ? `and t.${c.doneAt} is null` : ""} limit 1))::int`
    : "0";
  return `
with late as materialized (
  select r.since from (${ready}) r where ${isLate("r.since")} ${isParked}
  ${states.ready === states.claimed ? "" : `union all select e.since from (${expired}) e`}
),
failing as materialized (
  select f.attempts, f.last_error from (${failing}) f where f.attempts >= ${failuresMin}
)
select (select count(*) from late)::int as late,
       coalesce((select extract(epoch from clock_timestamp() - min(since)) * 1000 from late), 0)::float8 as "oldestMs",
       (select count(*) from failing)::int as failing,
       (select last_error from failing order by attempts desc limit 1) as "lastError",
       ${parked} as parked`;
}
