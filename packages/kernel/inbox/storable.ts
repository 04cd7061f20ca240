/** Makes any event storable, so that an event PostgreSQL would refuse can still be dead-lettered. */
import { createHash } from "node:crypto";
import type { Delivery, Envelope } from "../bus/index.ts";

/** A delivery whose `eventId` the tables of the inbox can store. */
export interface Arrival extends Delivery {
  /** The id that the event came with, when that is no UUID; `eventId` is then derived from it. */
  readonly invalidId?: string;
}

const canonicalUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** PostgreSQL returns a UUID in lower case, and marks are compared as text: "A1…" and "a1…" are one event. */
export function withStorableId(delivery: Delivery): Arrival {
  if (canonicalUuid.test(delivery.eventId)) return delivery;
  const eventId = delivery.eventId.toLowerCase();
  if (canonicalUuid.test(eventId)) return { ...delivery, eventId };
  return { ...delivery, eventId: derivedId(delivery.eventId), invalidId: delivery.eventId };
}

/** The same for every delivery of the event, so that it is dead-lettered once. A UUID of version 8: made by a rule of our own. */
function derivedId(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");

/** The event with every text made storable. The payload stays as it came; an id that was replaced is kept as a header. */
export function storable(arrival: Arrival): Envelope {
  const { eventId, eventType, subject, aggregateKey, occurredAt, payload, invalidId } = arrival;
  const headers = Object.entries({
    ...arrival.headers,
    ...(invalidId !== undefined && { original_event_id: invalidId }),
  });
  return {
    eventId,
    eventType: storableText(eventType),
    subject: storableText(subject),
    aggregateKey: storableText(aggregateKey),
    occurredAt: storableText(occurredAt),
    headers: Object.fromEntries(headers.map(([name, value]) => [storableText(name), storableText(value)])),
    payload,
  };
}
