/** PointsGranted, PointsSpent and PointsExpired. A hold and its release emit nothing: the user's points neither come nor go. */
import { randomUUIDv7 } from "node:crypto";
import type { NewEvent } from "@todoke/kernel/outbox";
import type { Kind, Time } from "../ledger/account.ts";
import type { PointTransaction } from "../ledger/changes.ts";

const eventTypes: Partial<Record<Kind, string>> = {
  ADD: "PointsGranted",
  GRANT: "PointsGranted",
  REFUND: "PointsGranted",
  SUB: "PointsSpent",
  CAPTURE: "PointsSpent",
  EXPIRE: "PointsExpired",
};

export interface TransactionContext {
  readonly headers: Readonly<Record<string, string>>;
  /** When the lot of a grant expires. */
  readonly expiresAt: Time | null;
}

/** Returns undefined for a kind that emits no event. */
export function transactionEvent(
  transaction: PointTransaction,
  { headers, expiresAt }: TransactionContext,
): NewEvent | undefined {
  const { id, kind, userId, moved, balanceAfter, version, reason, source, sourceId, createdAt } = transaction;
  const eventType = eventTypes[kind];
  if (eventType === undefined) return undefined;
  const eventId = randomUUIDv7();
  const { trace_id } = headers;
  return {
    eventId,
    eventType,
    subject: "points.events",
    aggregateKey: userId,
    version,
    headers,
    payload: {
      event_id: eventId,
      event_type: eventType,
      occurred_at: createdAt,
      version: version.toString(),
      user_id: userId,
      transaction_id: id,
      point_amount: moved.toString(),
      balance: balanceAfter.toString(),
      ...(reason !== null && { reason }),
      ...(source !== null && { source }),
      ...(sourceId !== null && { source_id: sourceId }),
      ...(expiresAt !== null && { expires_at: expiresAt }),
      ...(trace_id !== undefined && { trace_id }),
    },
  };
}
