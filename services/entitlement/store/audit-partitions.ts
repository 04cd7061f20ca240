/**
 * The monthly partitions of entitlement_audit. An advisory lock lets one process at a time change them. The functions run
 * with the rights of the owner of the tables, which the service need not be (docs/adr/0052).
 */
import type { Tx } from "@todoke/kernel/db";

/** Creates the missing partitions of this month and of `ahead` more. Commands are not blocked. */
export async function createAuditPartitions(tx: Tx, ahead: number): Promise<void> {
  await lockPartitions(tx);
  await tx.query(`select make_entitlement_audit_months($1)`, [ahead]);
}

/**
 * Drops the partitions that ended more than `keep` months ago and returns their names. Commands wait for the drop, so
 * give the transaction a short lock timeout: retrying in an hour is better than commands queued behind a long reader.
 */
export async function dropAuditPartitions(tx: Tx, keep: number): Promise<string[]> {
  await lockPartitions(tx);
  const { rows } = await tx.query<{ partition: string }>(
    `select partition from drop_entitlement_audit_months($1) as partition`,
    [keep],
  );
  return rows.map(({ partition }) => partition);
}

const lockPartitions = (tx: Tx) =>
  tx.query(`select pg_advisory_xact_lock(hashtextextended('entitlement_audit months ' || current_schema(), 0))`);
