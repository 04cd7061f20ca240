/**
 * Keeps the months of the audit: the next ones are there before they begin, and old ones go by age.
 *
 * Without its month no command could commit, so a service makes sure before it serves, and looks again every hour: two
 * months of failures would have to pass before one is missed. Any number of processes may do this at once.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { periodically } from "@todoke/kernel/worker";
import { dropAuditMonths, makeAuditMonths } from "./store/audit-months.ts";

const monthsAhead = 2;
const hourMs = 3_600_000;

export interface AuditMonthsOptions {
  /** Whole months that the audit reaches back, besides the present one. */
  readonly keepMonths: number;
  readonly everyMs?: number;
  readonly onError: (error: unknown) => void;
  /** Hears what was dropped, for the log: it does not come back. */
  readonly onDropped: (partitions: readonly string[]) => void;
}

/** Resolves once this month and the next are there, and goes on until disposed. */
export async function keepAuditMonths(db: Db, options: AuditMonthsOptions): Promise<AsyncDisposable> {
  await transaction(db, (tx) => makeAuditMonths(tx, monthsAhead));
  const { everyMs = hourMs, onError } = options;
  const what = "keeping the months of entitlement_audit";
  return periodically(() => keepOnce(db, options), { everyMs, what, onError });
}

async function keepOnce(db: Db, { keepMonths, onDropped }: AuditMonthsOptions): Promise<void> {
  await transaction(db, (tx) => makeAuditMonths(tx, monthsAhead));
  const dropped = await transaction(db, (tx) => dropAuditMonths(tx, keepMonths), { lockTimeoutMs: 200 });
  if (dropped.length > 0) onDropped(dropped);
}
