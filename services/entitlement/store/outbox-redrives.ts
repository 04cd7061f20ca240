/** The record of redrives. */
import type { Redrive } from "@todoke/http";
import type { Tx } from "@todoke/kernel/db";

export async function insertRedrive(tx: Tx, redrive: Redrive): Promise<void> {
  const { event_id, redriven_by, reason, attempt_count, last_error } = redrive;
  await tx.query(
    `insert into outbox_redrives (event_id, redriven_by, reason, attempt_count, last_error) values ($1, $2, $3, $4, $5)`,
    [event_id, redriven_by, reason, attempt_count, last_error],
  );
}
