/**
 * What a service's own statements say of claims: the fence, the lease, when a row is due. A service that settles its rows
 * itself, or puts them off, states its own columns and has the rest written here.
 */
import { utcText } from "../db/index.ts";
import { endOfLease } from "./statements.ts";
import { type ClaimedTable, checkState, columnsOf } from "./table.ts";

/** All texts are SQL over the row `t`. */
export interface HeldRowUpdate {
  /** The service's own columns, and the status where it changes: a set list. */
  readonly set: string;
  readonly where?: string;
  /**
   * `end`: the claim is over. `expire`: it is over for this worker, and the next claim takes the row as a dead worker's.
   * `renewMs`: it goes on for so long, and only if it has not expired.
   */
  readonly lease: "end" | "expire" | { readonly renewMs: string };
  /** In how many milliseconds the row is due. */
  readonly dueInMs?: string;
  /** With null for the epoch, a row that no worker holds is updated. */
  readonly orUnclaimed?: boolean;
}

export interface WaitingRowsUpdate {
  readonly state: string;
  /** Of the rows in this state those that are due now, or those that are due later. */
  readonly due: "now" | "later";
  readonly where?: string;
  /** The service's own columns, and the status where it changes. */
  readonly set?: string;
  readonly dueInMs?: string;
  /** The longest due first. */
  readonly limit: string;
}

export interface TableSql {
  /**
   * An UPDATE of the row that a claim holds, which returns `t.*`: $1 is its key, $2 the epoch of the claim. A worker that
   * has lost its lease changes nothing.
   */
  updateHeldRow(update: HeldRowUpdate): string;
  /** An UPDATE of rows that wait. Rows that somebody has locked are left to them. */
  updateWaitingRows(update: WaitingRowsUpdate): string;
  /** The column to insert a row with that is not due at once. */
  readonly dueAt: string;
  /** When the row `row` is due, as RFC 3339; null in other states than these. */
  dueAtText(row: string, states: readonly string[]): string;
  /** A select list of how the work on the row `row` goes: `attempt_count`, `next_retry_at` (null once it is not ready), `last_error`. */
  workColumns(row: string): string;
  /** How many rows are in a state. Give the state a partial index. */
  count(state: string): string;
  /** How long the row has been due that has been due longest, in milliseconds; 0 where none is. */
  oldestDueMs(where?: string): string;
}

export function tableSql(spec: ClaimedTable): TableSql {
  const c = columnsOf(spec);
  const { table, key, keyType, states } = spec;
  const inState = (row: string, state: string) => {
    checkState(state);
    return `${row}.${c.status} = '${state}'`;
  };
  const dueIn = (ms: string) => `${c.dueAt} = ${inMs(ms)}`;

  return {
    updateHeldRow({ set, where, lease, dueInMs, orUnclaimed }) {
      const held = `t.${c.leaseUntil} is not null and t.${c.epoch} = $2::bigint`;
      const unclaimed = `t.${c.leaseUntil} is null or t.${c.leaseUntil} <= clock_timestamp()`;
      const alive = typeof lease === "object" ? ` and t.${c.leaseUntil} > clock_timestamp()` : "";
      return `update ${table} t
     set ${[set, ...(dueInMs === undefined ? [] : [dueIn(dueInMs)]), leaseSet(lease)].join(",\n         ")}
   where t.${key} = $1::${keyType}
     and ${orUnclaimed ? `case when $2::bigint is null then ${unclaimed} else ${held} end` : held}${alive}
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

    dueAt: c.dueAt,
    dueAtText,
    workColumns: (row) =>
      `${row}.${c.attempts} as attempt_count, ${dueAtText(row, [states.ready])} as next_retry_at,
      ${row}.${c.lastError} as last_error`,
    count: (state) => `(select count(*) from ${table} t where ${inState("t", state)})::int`,
    oldestDueMs: (where) => `coalesce((select extract(epoch from clock_timestamp() - t.${c.dueAt}) * 1000
      from ${table} t where ${inState("t", states.ready)} and t.${c.dueAt} <= now() ${where ? `and ${where}` : ""}
     order by t.${c.dueAt} limit 1), 0)::float8`,
  };

  function dueAtText(row: string, shown: readonly string[]): string {
    return `case when ${shown.map((state) => inState(row, state)).join(" or ")} then ${utcText(`${row}.${c.dueAt}`)} end`;
  }

  function leaseSet(lease: HeldRowUpdate["lease"]): string {
    if (lease === "end") return endOfLease(c);
    return `${c.leaseUntil} = ${lease === "expire" ? "clock_timestamp()" : inMs(lease.renewMs)}`;
  }
}

const inMs = (ms: string) => `clock_timestamp() + ${ms} * interval '1 millisecond'`;
