/** How a table that is worked by claims describes itself. A sixth such table is a description, not a copy. */
import { identifier } from "../db/pool.ts";

export interface ClaimTable {
  readonly table: string;
  readonly key: string;
  readonly keyType: "uuid" | "bigint" | "text";
  /**
   * The table's own words for the states. Without a word for `done`, a row that is done is deleted. `waiting` is for rows
   * between two tries, where they have a state of their own.
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
  const columns = { ...usualColumns, ...table.columns };
  const names = [table.table, table.key, table.queue, table.order?.aggregate, table.order?.position];
  for (const name of [...names, ...Object.values(columns)]) if (name !== undefined) identifier(name);
  for (const state of Object.values(table.states)) {
    if (!/^[A-Za-z_]+$/.test(state)) throw new Error(`${table.table}: "${state}" cannot be a state: use letters and _`);
  }
  return { ...table, columns };
}
