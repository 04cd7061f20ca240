/** Operator reads of any claimed table: its backlog, its oldest due rows, and the rows of one user or key. */
import { type Queryable, rfc3339Sql } from "../db/index.ts";
import { identifier } from "../db/pool.ts";
import { type ClaimedTable, resolveColumns } from "./table.ts";
import { tableSql } from "./table-sql.ts";

/** Unfinished rows by state. For dead rows see `@todoke/kernel/dead-letters`. */
export interface Backlog {
  readonly ready: number;
  readonly claimed: number;
  /** Rows between two attempts, if they have a state of their own. */
  readonly waiting: number;
  /** How long the oldest due row has been due; 0 if none is due. */
  readonly oldestDueMs: number;
}

/** Reads the partial indexes of the claims only, so finished rows cost nothing. */
export async function readBacklog(db: Queryable, table: ClaimedTable): Promise<Backlog> {
  const { states } = table;
  const sql = tableSql(table);
  const { rows } = await db.query<Backlog>(
    `select ${sql.count(states.ready)} as ready, ${sql.count(states.claimed)} as claimed,
            ${states.waiting ? sql.count(states.waiting) : "0"} as waiting, ${sql.oldestDueMs()} as "oldestDueMs"`,
  );
  return rows[0] as Backlog;
}

/** The claim columns of a row. Times are RFC 3339, UTC. */
export interface WorkRow {
  readonly key: string;
  readonly status: string;
  readonly attempts: number;
  readonly dueAt: string;
  readonly lastError: string | null;
  /** The worker that has claimed the row, and until when; null if none has. */
  readonly lockedBy: string | null;
  readonly leaseUntil: string | null;
}

/** Rows that a worker could claim now, the earliest due first. */
export function readOldestDue(db: Queryable, table: ClaimedTable, limit: number): Promise<WorkRow[]> {
  const c = resolveColumns(table);
  const where = `t.${c.status} = '${table.states.ready}' and t.${c.dueAt} <= now()`;
  return select(db, table, { where, order: c.dueAt, values: [limit] });
}

export interface ColumnValue {
  /** An indexed column of the table: "user_id", "idempotency_key". */
  readonly column: string;
  readonly value: string;
  readonly limit: number;
}

/** Rows with one value in an indexed column: of one user, with one key. */
export function readByColumn(
  db: Queryable,
  table: ClaimedTable,
  { column, value, limit }: ColumnValue,
): Promise<WorkRow[]> {
  return select(db, table, { where: `t.${identifier(column)} = $2`, order: table.key, values: [limit, value] });
}

async function select(
  db: Queryable,
  table: ClaimedTable,
  { where, order, values }: { readonly where: string; readonly order: string; readonly values: unknown[] },
): Promise<WorkRow[]> {
  const c = resolveColumns(table);
  const { rows } = await db.query<WorkRow>(
    `select t.${table.key}::text as key, t.${c.status} as status, t.${c.attempts}::int as attempts,
            ${rfc3339Sql(`t.${c.dueAt}`)} as "dueAt", t.${c.lastError} as "lastError", t.${c.lockedBy} as "lockedBy",
            ${rfc3339Sql(`t.${c.leaseUntil}`)} as "leaseUntil"
       from ${table.table} t where ${where} order by t.${order} limit $1`,
    values,
  );
  return rows;
}
