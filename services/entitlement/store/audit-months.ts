/** The months of entitlement_audit. One process at a time, whoever else tries: the others wait, and find nothing to do. */
import type { Tx } from "@todoke/kernel/db";

/** Makes this month and `ahead` more, where they are missing. Commands go on meanwhile. */
export async function makeAuditMonths(tx: Tx, ahead: number): Promise<void> {
  await takeTurn(tx);
  await tx.query(`select make_entitlement_audit_months($1)`, [ahead]);
}

/**
 * Drops the months that ended more than `keep` months ago and returns their names. Commands wait for it, so give the
 * transaction a short lock timeout: better another try in an hour than commands that queue behind a long reader.
 */
export async function dropAuditMonths(tx: Tx, keep: number): Promise<string[]> {
  await takeTurn(tx);
  const { rows } = await tx.query<{ partition: string }>(
    `select relname::text as partition from pg_inherits join pg_class on pg_class.oid = inhrelid
      where inhparent = 'entitlement_audit'::regclass and relname ~ '^entitlement_audit_\\d{4}_\\d{2}$'
        and to_date(right(relname, 7), 'YYYY_MM')
            < date_trunc('month', now() at time zone 'UTC') - $1::int * interval '1 month'
      order by relname`,
    [keep],
  );
  for (const { partition } of rows) await tx.query(`drop table ${partition}`);
  return rows.map(({ partition }) => partition);
}

const takeTurn = (tx: Tx) =>
  tx.query(`select pg_advisory_xact_lock(hashtextextended('entitlement_audit months ' || current_schema(), 0))`);
