/** The rows that retention deletes, and when. An order that has not ended is never deleted, nor is its ledger row. */
import type { RetentionPolicy } from "@todoke/kernel/retention";

/** History, fills and cancel requests are deleted with their order. An order that is open at the broker is kept. */
export const endedOrders: RetentionPolicy = {
  table: "outbox_orders",
  finished: "done_at is not null and execution is distinct from 'open'",
  since: "expires_at",
  keepMs: 0,
};

export const endedLedger: RetentionPolicy = {
  table: "idempo_ledger",
  finished: "status <> 'accepted'",
  since: "expires_at",
  keepMs: 0,
};
