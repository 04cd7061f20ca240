/** The spec of a claimed table. Another claimed table needs a spec, not another copy of the claim statements. */
import { identifier } from "../db/pool.ts";

/** The columns and states of a claimed table: all that `tableSql` needs. */
export interface ClaimedTable {
  readonly table: string;
  readonly key: string;
  readonly keyType: "uuid" | "bigint" | "text";
  /**
   * The table's own names of the states. Without `done`, a finished row is deleted. `waiting` is the state between two
   * attempts, if the table has one. If `claimed` equals `ready`, only the lease shows that a row is claimed.
   */
  readonly states: {
    readonly ready: string;
    readonly claimed: string;
    readonly done?: string;
    readonly dead: string;
    readonly waiting?: string;
  };
  /** Names of claim columns that differ from the defaults. */
  readonly columns?: Partial<ClaimColumns>;
  /** A column that splits the table into queues; a worker claims from one of them. */
  readonly queue?: string;
}

/** A claimed table, and what its workers claim, read and settle. */
export interface ClaimTableSpec extends ClaimedTable {
  /** Names the prepared statements. Set it if several specs describe one table. */
  readonly name?: string;
  readonly claim?: ClaimRules;
  /** Jobs write their own outcomes (docs/adr/0033): a settlement by the worker only ends the lease. */
  readonly settledByJobsOnly?: boolean;
  /**
   * Jobs of one `aggregate` run in the order of `position`; a dead one parks its aggregate and no other. Draw the position
   * while the aggregate's row is locked, or it is not the commit order. Do not insert rows that are due in the future.
   */
  readonly order?: { readonly aggregate: string; readonly position: string };
  /** The select list that a worker gets, over the claimed row `c` and what `join` adds. */
  readonly select: string;
  readonly join?: string;
  /** SQL that runs in the statement that makes rows dead; the CTE `dead_rows` has those rows. */
  readonly onDeadSql?: string;
}

export interface ClaimRules {
  /** An extra condition on the row `t`. `ClaimRequest.values` are its parameters: from $4, or $5 in a table with queues. */
  readonly where?: string;
  /** Claims ready rows in the order of these columns, due or not. */
  readonly orderBy?: readonly string[];
  /** Does not count an attempt. */
  readonly uncounted?: boolean;
  /** Claims only rows whose lease has expired. */
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

const defaultColumns: ClaimColumns = {
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

/** A spec with every name filled in and checked, so that names can go into SQL unescaped. */
export interface ResolvedSpec extends ClaimTableSpec {
  readonly columns: ClaimColumns;
}

export function resolveSpec(spec: ClaimTableSpec): ResolvedSpec {
  const columns = resolveColumns(spec);
  [spec.order?.aggregate, spec.order?.position, ...(spec.claim?.orderBy ?? [])].forEach(checkName);
  return { ...spec, columns };
}

/** Returns the column names after checking every name and state of the table. */
export function resolveColumns(table: ClaimedTable): ClaimColumns {
  const columns = { ...defaultColumns, ...table.columns };
  [table.table, table.key, table.queue, ...Object.values(columns)].forEach(checkName);
  Object.values(table.states).forEach(checkState);
  return columns;
}

function checkName(name: string | undefined): void {
  if (name !== undefined) identifier(name);
}

export function checkState(state: string): void {
  if (!/^[A-Za-z_]+$/.test(state)) throw new Error(`"${state}" cannot be a state: use letters and _`);
}
