/** What retention deletes, and when. An order that has not ended is never deleted, nor is its ledger row. */
import type { RetentionPolicy } from "@todoke/kernel/retention";

/** History and cancel requests are deleted with their order. */
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
