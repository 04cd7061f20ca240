/**
 * Claims: the rows of a table as jobs. One worker at a time has a row, a crashed worker's rows become claimable again, and
 * a worker whose lease has expired can change nothing.
 *
 * One engine serves every claimed table; a table is described by a spec. A claim counts the attempt, so that a job that
 * kills its process is dead-lettered in the end, and raises the row's epoch. To settle, renew or release a row, a worker
 * must present that epoch. All times are the database's.
 */
import type { Db, Queryable } from "../db/index.ts";
import { runStatement, toLastError } from "../db/index.ts";
import type { Outcome } from "../worker/outcome.ts";
import { canClaimRecent, claimRecentSql, claimSql, discardSql, redriveSql, renewSql, settleSql } from "./statements.ts";
import { type ClaimTableSpec, resolveSpec } from "./table.ts";

export { type Completion, type CompletionOptions, type CompletionRequest, createCompletion } from "./complete.ts";
export { type Delays, delayCountMax, failuresMin, lateMs, readDelays } from "./delays.ts";
export { type Backlog, readBacklog, readByColumn, readOldestDue, type WorkRow } from "./reads.ts";
export type { ClaimColumns, ClaimedTable, ClaimRules, ClaimTableSpec } from "./table.ts";
export { type ClaimedRowUpdate, type TableSql, tableSql, type WaitingRowsUpdate } from "./table-sql.ts";

/** A claimed row. */
export type Claimed<Row> = Row & {
  readonly claim: {
    readonly key: string;
    /** The fencing token; new at every claim. */
    readonly epoch: string;
    /** 1 for the first attempt. */
    readonly attempt: number;
  };
};

export interface ClaimRequest {
  /** A claim never returns more rows. */
  readonly limit: number;
  readonly leaseMs: number;
  /** Shown to operators in `locked_by`. The fence is the epoch. */
  readonly worker: string;
  /** The value of the table's queue column, if it has one. */
  readonly queue?: string;
  /** Parameters of the spec's `claim.where`. */
  readonly values?: readonly unknown[];
  /**
   * Claims only rows that became due within this time, and no expired leases: cheaper for a worker that has drained the
   * table before. Rows that commit late or are released become due in the past, so claim without it from time to time.
   * Ordered tables, tables that keep their state, and claims with `orderBy`, `expiredOnly` or `values` ignore it.
   */
  readonly dueWithinMs?: number;
}

/** The operator who redrives or discards dead rows, and the reason; stored in `redrives`. At most 128 and 500 characters. */
export interface RedriveRequest {
  readonly by: string;
  readonly reason: string;
  /** Redrives rows of this queue only; by default of all queues. */
  readonly queue?: string;
}

export interface Settlement {
  readonly claim: Claimed<unknown>["claim"];
  readonly outcome: Outcome;
}

/** The operations on one claimed table. */
export interface Claims<Row> {
  readonly table: ClaimTableSpec;
  /** Claims up to `limit` due rows. In an ordered table, rows of one aggregate come in their order. */
  claim(db: Db, request: ClaimRequest): Promise<Claimed<Row>[]>;
  /** Records the outcomes. Returns true for each that was written, false if the lease was lost. */
  settle(db: Db | Queryable, settlements: readonly Settlement[]): Promise<boolean[]>;
  /** Extends the leases by `leaseMs` from now. Returns false for each lease that was lost. */
  renew(db: Db, claimed: readonly Claimed<unknown>["claim"][], leaseMs: number): Promise<boolean[]>;
  /**
   * Makes dead rows ready again with all their attempts, and records who asked and why. Returns the keys of the rows that
   * were dead. Needs the kernel's table `redrives` in the same schema.
   */
  redrive(db: Queryable, keys: readonly string[], request: RedriveRequest): Promise<string[]>;
  /**
   * Deletes dead rows, and records the operator, the reason and copies of the rows. In an ordered table the rows behind them
   * are no longer parked. Returns the keys of the rows that were dead.
   */
  discard(db: Queryable, keys: readonly string[], request: RedriveRequest): Promise<string[]>;
}

/** Builds the claim statements of a table. `Row` is what the spec's select list returns. */
export function createClaims<Row extends object>(table: ClaimTableSpec): Claims<Row> {
  const spec = resolveSpec(table);
  const name = spec.name ?? `${spec.table} ${spec.key}`;
  const sql = {
    claim: claimSql(spec),
    claimRecent: canClaimRecent(spec) ? claimRecentSql(spec) : undefined,
    settle: settleSql(spec),
    renew: renewSql(spec),
    redrive: redriveSql(spec),
    discard: discardSql(spec),
  };

  async function changeDead(
    db: Queryable,
    action: "redrive" | "discard",
    { keys, by, reason, queue }: RedriveRequest & { readonly keys: readonly string[] },
  ): Promise<string[]> {
    const values = [keys, by, reason, ...(spec.queue ? [queue ?? null] : [])];
    const { rows } = await db.query<{ key: string }>({ name: `${action} ${name}`, text: sql[action], values });
    return rows.map((row) => row.key);
  }

  return {
    table,

    async claim(db, { limit, leaseMs, worker, queue, values: extra = [], dueWithinMs }) {
      const values = [limit, worker, leaseMs, ...(spec.queue ? [queue] : []), ...extra];
      const { rows } = await db.query(
        sql.claimRecent === undefined || dueWithinMs === undefined || extra.length > 0
          ? { name: `claim ${name}`, text: sql.claim, values }
          : { name: `claim recent ${name}`, text: sql.claimRecent, values: [...values, dueWithinMs] },
      );
      return rows.map(({ claim_key: key, claim_epoch: epoch, claim_attempt: attempt, ...row }) => ({
        ...(row as Row),
        claim: { key, epoch, attempt },
      }));
    },

    async settle(db, settlements) {
      if (settlements.length === 0) return [];
      const claimed = settlements.map((settlement) => settlement.claim);
      const notDone = settlements.filter((settlement) => settlement.outcome.kind !== "done");
      const { rows } = await db.query({
        name: `settle ${name}`,
        text: sql.settle,
        values: [
          sortedKeys(claimed),
          epochsByKey(claimed),
          JSON.stringify(Object.fromEntries(notDone.map(toParameter))),
        ],
      });
      return areApplied(claimed, rows);
    },

    async renew(db, claimed, leaseMs) {
      if (claimed.length === 0) return [];
      const { rows } = await runStatement<{ key: string }>(db, {
        name: `renew ${name}`,
        text: sql.renew,
        values: [sortedKeys(claimed), epochsByKey(claimed), leaseMs],
      });
      return areApplied(claimed, rows);
    },

    redrive: (db, keys, request) => changeDead(db, "redrive", { keys, ...request }),
    discard: (db, keys, request) => changeDead(db, "discard", { keys, ...request }),
  };
}

type Claim = Claimed<unknown>["claim"];

function toParameter({ claim, outcome }: Settlement) {
  return [
    claim.key,
    {
      outcome: outcome.kind,
      delay_ms: "delayMs" in outcome ? outcome.delayMs : null,
      reason: "reason" in outcome ? toLastError(outcome.reason) : null,
    },
  ] as const;
}

/** Sorted, so that two workers that settle the same rows lock them in the same order and cannot deadlock. */
const sortedKeys = (claimed: readonly Claim[]) => claimed.map((claim) => claim.key).sort();

const epochsByKey = (claimed: readonly Claim[]) =>
  JSON.stringify(Object.fromEntries(claimed.map(({ key, epoch }) => [key, epoch])));

function areApplied(claimed: readonly Claim[], rows: readonly { key: string }[]): boolean[] {
  const applied = new Set(rows.map((row) => row.key));
  return claimed.map((claim) => applied.has(claim.key));
}
