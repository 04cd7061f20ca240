/**
 * Turns each event into one notification per user it concerns, in the transaction that marks the event processed. On a channel
 * in this process it sends them in the same transaction; otherwise it wakes the sender after the commit.
 */
import { hash } from "node:crypto";
import { decodeEvent, formatEvent, formatTimestamp, isEventType } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { afterCommit, type Tx } from "@todoke/kernel/db";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { insertNotifications, insertSent, type NotificationRow } from "../store/notifications.ts";
import { countSent } from "../telemetry.ts";
import type { SendBatch } from "../workers/notification-sender.ts";
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
  return draftsFor(eventType, event).map((draft) => ({
    ...draft,
    // The envelope's id, which the inbox marks processed, and not the payload's.
    event_id: eventId,
    event_type: eventType,
    formatPayload: () => formatEvent(eventType, event),
    occurred_at: formatTimestamp(event.occurredAt),
    headers: pickTrace(headers),
  }));
}

export interface NotifyOptions {
  /** Called after the commit of PENDING notifications. */
  readonly wakeSender: () => void;
  /** Called after the commit of any. */
  readonly wakeStreams?: () => void;
  /** Sends on a channel in this process, if it has one. */
  readonly sendNow?: SendBatch;
}

/** Inserts the notifications of a batch with one statement. */
export function notify({ wakeSender, wakeStreams = () => {}, sendNow }: NotifyOptions) {
  /** After a failure the next batches are left to the sender, which counts attempts, delays and dead-letters. */
  let sendNowFrom = 0;

  return async (tx: Tx, read: readonly (readonly NewNotification[])[]): Promise<void> => {
    if (read.every((notifications) => notifications.length === 0)) return;
    // A single event is handled in its own span, which becomes the parent of the sending.
    const trace = read.length === 1 ? traceHeaders() : {};
    const rows = read.flat().map((notification) => ({
      ...notification,
      notification_id: notificationId(notification),
      headers: { ...notification.headers, ...trace },
    }));
    afterCommit(tx, wakeStreams);
    if (!sendNow || performance.now() < sendNowFrom) {
      await insertNotifications(tx, rows);
      return afterCommit(tx, wakeSender);
    }
    try {
      const sent = await insertSent(tx, rows);
      await sendNow(sent);
      afterCommit(tx, () => countSent(sent.length));
    } catch (error) {
      sendNowFrom = performance.now() + sendNowPauseMs;
      throw error; // Nothing was inserted. The inbox handles the events again.
    }
  };
}

const sendNowPauseMs = 1_000;

/**
 * The id of a notification, a UUID v7 of the event's time. The same event and user have the same id at every attempt, so
 * that receivers recognise a duplicate, and an event that is handled twice is one notification.
 */
function notificationId({ event_id, user_id }: NewNotification): string {
  const eventId = event_id.toLowerCase();
  const digest = hash("sha256", `${eventId} ${user_id}`, "hex");
  const variant = "89ab"[Number.parseInt(digest.slice(0, 1), 16) % 4];
  return `${eventId.slice(0, 14)}7${digest.slice(1, 4)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}`;
}

function pickTrace({ traceparent, trace_id }: Envelope["headers"]): Record<string, string> {
  return { ...(traceparent !== undefined && { traceparent }), ...(trace_id !== undefined && { trace_id }) };
}
