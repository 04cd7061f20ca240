/**
 * What the events of others do here: each becomes one notification for every user it concerns, in the transaction that
 * marks it processed, and the sender hears of it after the commit. One with nothing to tell is marked, and that is all.
 */
import { randomUUIDv7 } from "node:crypto";
import { decodeEvent, type Event, type EventType, isEventType } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { afterCommit, type Tx } from "@todoke/kernel/db";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { insertNotifications, type NotificationRow } from "../store/notifications.ts";
import { draftsFor } from "../templates/templates.ts";

/** What is known of a notification before it is written. */
export type NewNotification = Omit<NotificationRow, "notification_id">;

/**
 * Throws when this build cannot read it: the inbox then puts it away whole. That goes for a type that only a newer build
 * knows as well, as in the middle of a deploy: to mark it as dealt with would mean that its user is never told.
 */
export function readEvent({ eventId, eventType, headers, payload }: Envelope): readonly NewNotification[] {
  if (!isEventType(eventType)) {
    throw new Error(`${eventType} is not a type of event that this build knows; deploy one that does, then redrive it`);
  }
  const event = decodeEvent(eventType, payload);
  return draftsFor(eventType, event).map((telling) => ({
    ...telling,
    // The id that the inbox marks, so that the mark and the notifications can never be of two events.
    event_id: eventId,
    event_type: eventType,
    occurred_at: timeOf(event),
    headers: traceOf(headers),
  }));
}

/** The effect of a batch: one statement, however many events and users. `wake` is called once they are committed. */
export function notify(wake: () => void) {
  return async (tx: Tx, read: readonly (readonly NewNotification[])[]): Promise<void> => {
    const notices = read.flat();
    if (notices.length === 0) return;
    // Alone, the effect runs within the event's own span, and the sending goes on from there.
    const trace = read.length === 1 ? traceHeaders() : {};
    await insertNotifications(
      tx,
      notices.map((notice) => ({
        ...notice,
        notification_id: randomUUIDv7(),
        headers: { ...notice.headers, ...trace },
      })),
    );
    afterCommit(tx, wake);
  };
}

/** RFC 3339 with all the microseconds that PostgreSQL keeps: two events of one millisecond stay in their order. */
function timeOf({ occurredAt: { seconds, nanos } }: Event<EventType>): string {
  const upToSeconds = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return `${upToSeconds}.${String(Math.floor(nanos / 1_000)).padStart(6, "0")}Z`;
}

/** Of what travels with an event, only the trace goes on. */
function traceOf({ traceparent, trace_id }: Envelope["headers"]): Record<string, string> {
  return { ...(traceparent !== undefined && { traceparent }), ...(trace_id !== undefined && { trace_id }) };
}
