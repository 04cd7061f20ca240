/** How a table that is worked by claims describes itself. A sixth such table is a description, not a copy. */
import { identifier } from "../db/pool.ts";

/** The columns and states of a claimed table: all that `tableSql` needs. */
export interface ClaimedTable {
  readonly table: string;
  readonly key: string;
  readonly keyType: "uuid" | "bigint" | "text";
  /**
   * The table's own words for the states. Without a word for `done`, a row that is done is deleted. `waiting` is for rows
   * between two tries, where they have a state of their own. Where `claimed` is the same as `ready`, the lease alone says
   * that a worker has the row.
   */
  readonly states: {
    readonly ready: string;
    readonly claimed: string;
    readonly done?: string;
    readonly dead: string;
    readonly waiting?: string;
  };
  /** Names of the columns that every such table has, where they differ from the usual ones. */
  readonly columns?: Partial<ClaimColumns>;
  /** A column whose value splits the table into queues that are claimed apart. */
  readonly queue?: string;
}

export interface ClaimTable extends ClaimedTable {
  /** The name of the statements, where one table is described more than once. */
  readonly name?: string;
  /** How rows are claimed, where that differs. */
  readonly claim?: ClaimRules;
  /** Only jobs settle their rows (docs/adr/0033): what the worker settles loses its lease, and nothing else changes. */
  readonly settledByJobsOnly?: boolean;
  /**
   * Rows of one `aggregate` are worked in the order of `position`; a dead one parks those behind it, and no others.
   * The position must be drawn while the aggregate's row is locked, or it is not the order of the commits. A row of an
   * ordered table must not be inserted with a due time in the future.
   */
  readonly order?: { readonly aggregate: string; readonly position: string };
  /** What a worker gets to see: a select list over the claimed row `c` (and what `join` adds). */
  readonly read: string;
  readonly join?: string;
  /** SQL that runs in the statement that makes rows dead; `died` holds those rows. */
  readonly whenDead?: string;
}

export interface ClaimRules {
  /** A further condition on the row `t`. */
  readonly where?: string;
  /** The claim counts no attempt. */
  readonly uncounted?: boolean;
  /** Only rows whose lease has expired. */
  readonly expiredOnly?: boolean;
}

export interface ClaimColumns {
  readonly status: string;
  readonly attempts: string;
  readonly dueAt: string;
  readonly epoch: string;
  readonly lockedBy: string;
  readonly lockedAt: string;
  readonly leaseUntil: string;
  readonly lastError: string;
  readonly doneAt: string;
}

const usualColumns: ClaimColumns = {
  status: "status",
  attempts: "attempt_count",
  dueAt: "next_retry_at",
  epoch: "lease_epoch",
  lockedBy: "locked_by",
  lockedAt: "locked_at",
  leaseUntil: "lease_until",
  lastError: "last_error",
  doneAt: "done_at",
};

/** A description with every name filled in and checked: from here on names go into SQL as they are. */
export interface DescribedTable extends ClaimTable {
  readonly columns: ClaimColumns;
}

export function describe(table: ClaimTable): DescribedTable {
  const columns = columnsOf(table);
  for (const name of [table.order?.aggregate, table.order?.position]) if (name !== undefined) identifier(name);
  return { ...table, columns };
}

/** The columns' names. All names and states of the description are checked. */
export function columnsOf(table: ClaimedTable): ClaimColumns {
  const columns = { ...usualColumns, ...table.columns };
  const names = [table.table, table.key, table.queue, ...Object.values(columns)];
  for (const name of names) if (name !== undefined) identifier(name);
  Object.values(table.states).forEach(checkState);
  return columns;
}

export function checkState(state: string): void {
  if (!/^[A-Za-z_]+$/.test(state)) throw new Error(`"${state}" cannot be a state: use letters and _`);
}
