/** outbox_orders as a claimed table, for workers and for statements about rows that a worker may have claimed. */
import { type ClaimedTable, tableSql } from "@todoke/kernel/claims";

export const outboxOrdersTable = {
  table: "outbox_orders",
  key: "id",
  keyType: "bigint",
  queue: "adapter",
  states: { ready: "pending", claimed: "sending", done: "succeeded", dead: "aborted" },
  columns: { attempts: "attempts", lastError: "last_error_msg" },
} as const satisfies ClaimedTable;

export const ordersSql = tableSql(outboxOrdersTable);
