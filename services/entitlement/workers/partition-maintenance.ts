/**
 * Maintains the monthly partitions of entitlement_audit: creates them two months ahead and drops them by age.
 *
 * A command cannot commit without the current partition. The service therefore creates it before it serves requests, and
 * checks every hour; two months of failures have to pass before one is missing. Any number of processes may run this.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { startLoop } from "@todoke/kernel/worker";
import { createAuditPartitions, dropAuditPartitions } from "../store/audit-partitions.ts";

const monthsAhead = 2;
const hourMs = 3_600_000;

export interface PartitionMaintenanceOptions {
  /** Full months to keep before the current one. */
  readonly keepMonths: number;
  readonly intervalMs?: number;
  readonly onError: (error: unknown) => void;
  /** Called with the dropped partitions, for the log: their rows are deleted. */
  readonly onDropped: (partitions: readonly string[]) => void;
}

/** Resolves once the partitions of this month and the next two exist; runs until disposed. */
export async function startPartitionMaintenance(
  db: Db,
  { keepMonths, intervalMs = hourMs, onError, onDropped }: PartitionMaintenanceOptions,
): Promise<AsyncDisposable> {
  const create = () => transaction(db, (tx) => createAuditPartitions(tx, monthsAhead));
  async function maintain(): Promise<void> {
    await create();
    const dropped = await transaction(db, (tx) => dropAuditPartitions(tx, keepMonths), { lockTimeoutMs: 200 });
    if (dropped.length > 0) onDropped(dropped);
  }
  await create();
  return startLoop(maintain, {
    intervalMs,
    task: "maintaining the partitions of entitlement_audit",
    onError,
  });
}
