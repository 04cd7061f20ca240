/**
 * Turns each event into one notification per user it concerns, in the transaction that marks the event processed, and
 * wakes the sender after the commit.
 */
import { randomUUIDv7 } from "node:crypto";
import { decodeEvent, formatEvent, formatTimestamp, isEventType } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { afterCommit, type Tx } from "@todoke/kernel/db";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { insertNotifications, type NotificationRow } from "../store/notifications.ts";
import { draftsFor } from "./templates.ts";

export type NewNotification = Omit<NotificationRow, "notification_id">;

/**
 * Throws if this build cannot read the event, and the inbox dead-letters it. An unknown type counts as unreadable: it may
 * come from a newer build during a deploy, and marking it processed would lose its notifications.
 */
export function readEvent({ eventId, eventType, headers, payload }: Envelope): readonly NewNotification[] {
  if (!isEventType(eventType)) {
    throw new Error(
      `this build does not know the event type ${eventType}; deploy one that does, then redrive the event`,
    );
  }
  const event = decodeEvent(eventType, payload);
  const json = formatEvent(eventType, event);
  return draftsFor(eventType, event).map((draft) => ({
    ...draft,
    // The envelope's id, which the inbox marks processed, and not the payload's.
    event_id: eventId,
    event_type: eventType,
    payload: json,
    occurred_at: formatTimestamp(event.occurredAt),
    headers: pickTrace(headers),
  }));
}

/** Inserts the notifications of a batch with one statement. `wake` is called after the commit. */
export function notify(wake: () => void) {
  return async (tx: Tx, read: readonly (readonly NewNotification[])[]): Promise<void> => {
    const notifications = read.flat();
    if (notifications.length === 0) return;
    // A single event is handled in its own span, which becomes the parent of the sending.
    const trace = read.length === 1 ? traceHeaders() : {};
    await insertNotifications(
      tx,
      notifications.map((notification) => ({
        ...notification,
        notification_id: randomUUIDv7(),
        headers: { ...notification.headers, ...trace },
      })),
    );
    afterCommit(tx, wake);
  };
}

function pickTrace({ traceparent, trace_id }: Envelope["headers"]): Record<string, string> {
  return { ...(traceparent !== undefined && { traceparent }), ...(trace_id !== undefined && { trace_id }) };
}
