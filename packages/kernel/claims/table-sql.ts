/**
 * Claim columns for a service's own statements: the fence, the lease and the due time. A service that settles or delays its
 * rows itself states its own columns and gets the rest from here.
 */
import { rfc3339Sql } from "../db/index.ts";
import { endLeaseSet } from "./statements.ts";
import { type ClaimedTable, checkState, resolveColumns } from "./table.ts";

/** All values are SQL over the row `t`. */
export interface ClaimedRowUpdate {
  /** A SET list of the service's own columns, and of the status if it changes. */
  readonly set: string;
  readonly where?: string;
  /**
   * `end`: ends the claim. `expire`: lets the lease expire now, so that the next claim takes the row. `renewMs`: extends
   * the lease, unless it has expired.
   */
  readonly lease: "end" | "expire" | { readonly renewMs: string };
  /** Makes the row due in this many milliseconds. */
  readonly dueInMs?: string;
  /** Clears the error of the last attempt, as the settlement of a done row does. */
  readonly clearsError?: boolean;
  /** Also updates a row that no worker has claimed, if $2 is null. */
  readonly orUnclaimed?: boolean;
}

export interface WaitingRowsUpdate {
  readonly state: string;
  /** Updates the rows in this state that are due now, or those that are due later. */
  readonly due: "now" | "later";
  readonly where?: string;
  /** A SET list of the service's own columns, and of the status if it changes. */
  readonly set?: string;
  readonly dueInMs?: string;
  /** At most this many, the earliest due first. */
  readonly limit: string;
}

/** Parts of SQL about one claimed table. */
export interface TableSql {
  /** An UPDATE of a claimed row that returns `t.*`: $1 key, $2 epoch. It changes nothing if the lease was lost. */
  updateClaimedRow(update: ClaimedRowUpdate): string;
  /** An UPDATE of unclaimed rows. It skips locked rows. */
  updateWaitingRows(update: WaitingRowsUpdate): string;
  /** A column list and its values, to insert a row whose work is done in the same transaction. */
  readonly doneColumns: string;
  readonly doneValues: string;
  /** The due-time column, to insert a row that is not due at once. */
  readonly dueAtColumn: string;
  /** The due time of the row `row` as RFC 3339 text; null in other states than these. */
  dueAtSql(row: string, states: readonly string[]): string;
  /** A select list of `attempt_count`, `next_retry_at` (null unless the row is ready) and `last_error`. */
  workColumns(row: string): string;
  /** The number of rows in a state. The state needs a partial index. */
  count(state: string): string;
  /** How long the oldest due row has been due, in milliseconds; 0 if none is due. */
  oldestDueMs(where?: string): string;
}

export function tableSql(spec: ClaimedTable): TableSql {
  const c = resolveColumns(spec);
  const { table, key, keyType, states } = spec;
  const inState = (row: string, state: string) => {
    checkState(state);
    return `${row}.${c.status} = '${state}'`;
  };
  const dueIn = (ms: string) => `${c.dueAt} = ${msFromNow(ms)}`;

  return {
    updateClaimedRow({ set, where, lease, dueInMs, clearsError, orUnclaimed }) {
      const ownSets = [
        set,
        ...(dueInMs === undefined ? [] : [dueIn(dueInMs)]),
        ...(clearsError ? [`${c.lastError} = null`] : []),
      ];
      const isOurClaim = `t.${c.leaseUntil} is not null and t.${c.epoch} = $2::bigint`;
      const isUnclaimed = `t.${c.leaseUntil} is null or t.${c.leaseUntil} <= clock_timestamp()`;
      const isUnexpired = typeof lease === "object" ? ` and t.${c.leaseUntil} > clock_timestamp()` : "";
      return `update ${table} t
     set ${[...ownSets, leaseSet(lease)].join(",\n         ")}
   where t.${key} = $1::${keyType}
     and ${orUnclaimed ? `case when $2::bigint is null then ${isUnclaimed} else ${isOurClaim} end` : isOurClaim}${isUnexpired}
     ${where ? `and ${where}` : ""}
  returning t.*`;
    },

    updateWaitingRows({ state, due, where, set, dueInMs, limit }) {
      const sets = [...(set === undefined ? [] : [set]), ...(dueInMs === undefined ? [] : [dueIn(dueInMs)])];
      return `update ${table} set ${sets.join(", ")}
   where ${key} = any(array(select t.${key} from ${table} t
                         where ${inState("t", state)} and t.${c.dueAt} ${due === "now" ? "<=" : ">"} statement_timestamp()
                           ${where ? `and ${where}` : ""}
                         order by t.${c.dueAt} limit ${limit} for update skip locked))`;
    },

    doneColumns: `${c.status}, ${c.doneAt}, ${c.attempts}, ${c.epoch}`,
    doneValues: `'${states.done}', clock_timestamp(), 1, 1`,
    dueAtColumn: c.dueAt,
    dueAtSql: dueAtSql,
    workColumns: (row) =>
      `${row}.${c.attempts} as attempt_count, ${dueAtSql(row, [states.ready])} as next_retry_at,
      ${row}.${c.lastError} as last_error`,
    count: (state) => `(select count(*) from ${table} t where ${inState("t", state)})::int`,
    oldestDueMs: (where) => `coalesce((select extract(epoch from clock_timestamp() - t.${c.dueAt}) * 1000
      from ${table} t where ${inState("t", states.ready)} and t.${c.dueAt} <= now() ${where ? `and ${where}` : ""}
     order by t.${c.dueAt} limit 1), 0)::float8`,
  };

  function dueAtSql(row: string, shown: readonly string[]): string {
    return `case when ${shown.map((state) => inState(row, state)).join(" or ")} then ${rfc3339Sql(`${row}.${c.dueAt}`)} end`;
  }

  function leaseSet(lease: ClaimedRowUpdate["lease"]): string {
    if (lease === "end") return endLeaseSet(c);
    return `${c.leaseUntil} = ${lease === "expire" ? "clock_timestamp()" : msFromNow(lease.renewMs)}`;
  }
}

const msFromNow = (ms: string) => `clock_timestamp() + ${ms} * interval '1 millisecond'`;
