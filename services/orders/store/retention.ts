/**
 * What is removed, and when: never an order of which it is not known what became of it, nor its ledger; and what has ended
 * not before it was kept for all of its time since the end.
 */
import type { RetentionPolicy } from "@todoke/kernel/retention";

/** Also what hangs on them: history and cancel requests. */
export const endedOrders: RetentionPolicy = {
  table: "outbox_orders",
  finished: "done_at is not null",
  since: "expires_at",
  keepMs: 0,
};

export const endedLedger: RetentionPolicy = {
  table: "idempo_ledger",
  finished: "status <> 'accepted'",
  since: "expires_at",
  keepMs: 0,
};
