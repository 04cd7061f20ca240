/**
 * Rows of a table as work: each row is worked by one process at a time, a dead worker's rows come back, and a slow
 * worker that lost its lease can change nothing.
 *
 * One engine for every such table; a table is a description. Claiming counts the attempt (so that work which kills its
 * process still comes to an end) and raises the row's epoch; whoever settles, renews or releases must name that epoch.
 * All times are the database's.
 */
import type { Db, Queryable } from "../db/index.ts";
import { statement } from "../db/index.ts";
import type { Outcome } from "../worker/outcome.ts";
import { claimFreshSql, claimSql, hasFresh, redriveSql, renewSql, settleSql } from "./statements.ts";
import { type ClaimTable, describe } from "./table.ts";

export { type Backlog, readBacklog, readByColumn, readOldestDue, type WorkRow } from "./reads.ts";
export type { ClaimColumns, ClaimedTable, ClaimRules, ClaimTable } from "./table.ts";
export { type HeldRowUpdate, type TableSql, tableSql, type WaitingRowsUpdate } from "./table-sql.ts";

/** A row as its worker holds it. */
export type Claimed<Row> = Row & {
  readonly claim: {
    readonly key: string;
    /** The fence: another number at every claim. */
    readonly epoch: string;
    /** 1 for the first try. */
    readonly attempt: number;
  };
};

export interface ClaimRequest {
  /** Never more than this many rows are claimed. */
  readonly limit: number;
  readonly leaseMs: number;
  /** Who holds them, for the operator's eyes. The fence is the epoch. */
  readonly worker: string;
  /** The value of the table's queue column, where it has one. */
  readonly queue?: string;
  /**
   * Only what came due within so many ms, for a worker that has had all before; not what dead workers held. What is
   * committed late, or given back, comes due in the past: every now and then ask for everything. A table with order
   * always gives everything, and so does one whose rows keep their state while they are claimed.
   */
  readonly freshMs?: number;
}

/** Who lets dead rows be tried again, and why they can succeed now. Kept in `redrives`; at most 128 and 500 characters. */
export interface RedriveRequest {
  readonly by: string;
  readonly reason: string;
}

export interface Settlement {
  readonly claim: Claimed<unknown>["claim"];
  readonly outcome: Outcome;
}

export interface Claims<Row> {
  readonly table: ClaimTable;
  /** Takes up to `limit` rows that are due. Within an ordered table, rows of one aggregate come in their order. */
  claim(db: Db, request: ClaimRequest): Promise<Claimed<Row>[]>;
  /** Records what became of each; true where our lease still held, false where nothing was written. */
  settle(db: Db | Queryable, settlements: readonly Settlement[]): Promise<boolean[]>;
  /** Holds on to the rows for another `leaseMs`; false where the lease is no longer ours. */
  renew(db: Db, claims: readonly Claimed<unknown>["claim"][], leaseMs: number): Promise<boolean[]>;
  /**
   * Gives dead rows a new life, with all their attempts, and keeps who asked for it; returns the keys of those that were
   * dead. Needs the kernel's table `redrives` in the same schema.
   */
  redrive(db: Queryable, keys: readonly string[], request: RedriveRequest): Promise<string[]>;
}

/** The row type is what `table.read` selects. */
export function claims<Row extends object>(table: ClaimTable): Claims<Row> {
  const t = describe(table);
  const name = t.name ?? `${t.table} ${t.key}`;
  const claimText = claimSql(t);
  const claimFreshText = hasFresh(t) ? claimFreshSql(t) : undefined;
  const settleText = settleSql(t);
  const renewText = renewSql(t);
  const redriveText = redriveSql(t);

  return {
    table,

    async claim(db, { limit, leaseMs, worker, queue, freshMs }) {
      const values: unknown[] = [limit, worker, leaseMs];
      if (t.queue) values.push(queue);
      const { rows } = await db.query(
        claimFreshText === undefined || freshMs === undefined
          ? { name: `claim ${name}`, text: claimText, values }
          : { name: `claim fresh ${name}`, text: claimFreshText, values: [...values, freshMs] },
      );
      return rows.map(({ claim_key: key, claim_epoch: epoch, claim_attempt: attempt, ...row }) => ({
        ...(row as Row),
        claim: { key, epoch, attempt },
      }));
    },

    async settle(db, settlements) {
      if (settlements.length === 0) return [];
      const held = settlements.map((settlement) => settlement.claim);
      const notDone = settlements.filter((settlement) => settlement.outcome.kind !== "done");
      const { rows } = await db.query({
        name: `settle ${name}`,
        text: settleText,
        values: [keysOf(held), epochsOf(held), JSON.stringify(Object.fromEntries(notDone.map(settlementOf)))],
      });
      return wonAmong(held, rows);
    },

    async renew(db, held, leaseMs) {
      if (held.length === 0) return [];
      const { rows } = await statement<{ key: string }>(db, {
        name: `renew ${name}`,
        text: renewText,
        values: [keysOf(held), epochsOf(held), leaseMs],
      });
      return wonAmong(held, rows);
    },

    async redrive(db, keys, { by, reason }) {
      const { rows } = await db.query({ name: `redrive ${name}`, text: redriveText, values: [keys, by, reason] });
      return rows.map((row) => row.key);
    },
  };
}

type Claim = Claimed<unknown>["claim"];

function settlementOf({ claim, outcome }: Settlement) {
  return [
    claim.key,
    {
      outcome: outcome.kind,
      in_ms: "inMs" in outcome ? outcome.inMs : null,
      why: "why" in outcome ? keepable(outcome.why) : null,
    },
  ] as const;
}

// Enough for a stack trace's first lines; an error must not grow the table.
const lastErrorMax = 2_000;

/** What PostgreSQL refuses to keep (NUL, half a surrogate pair) is replaced: a reason must not fail the settlement. */
const keepable = (why: string) => why.slice(0, lastErrorMax).toWellFormed().replaceAll("\0", "\uFFFD");

/** Sorted: two workers that settle the same rows take their locks in the same order, so neither can deadlock the other. */
const keysOf = (held: readonly Claim[]) => held.map((claim) => claim.key).sort();

const epochsOf = (held: readonly Claim[]) =>
  JSON.stringify(Object.fromEntries(held.map(({ key, epoch }) => [key, epoch])));

function wonAmong(held: readonly Claim[], rows: readonly { key: string }[]): boolean[] {
  const won = new Set(rows.map((row) => row.key));
  return held.map((claim) => won.has(claim.key));
}
