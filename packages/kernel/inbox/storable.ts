/** Makes any event storable, so that an event that PostgreSQL would reject can be dead-lettered too. */
import { createHash } from "node:crypto";
import type { Delivery, Envelope } from "../bus/index.ts";
import { toStorableText } from "../db/index.ts";

/** A delivery whose `eventId` is a UUID. */
export interface StorableDelivery extends Delivery {
  /** The original event ID, if it is not a UUID; `eventId` is then derived from it. */
  readonly invalidId?: string;
}

const canonicalUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** PostgreSQL returns UUIDs in lower case and marks are compared as text, so the ID is lower-cased here. */
export function withStorableId(delivery: Delivery): StorableDelivery {
  if (canonicalUuid.test(delivery.eventId)) return delivery;
  const eventId = delivery.eventId.toLowerCase();
  if (canonicalUuid.test(eventId)) return { ...delivery, eventId };
  return { ...delivery, eventId: deriveId(delivery.eventId), invalidId: delivery.eventId };
}

/** The same for every delivery of an event, so that it is dead-lettered once. Version 8 marks a custom UUID. */
function deriveId(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The event with every text made storable and its payload unchanged. An invalid ID is stored as a header. */
export function storable(delivery: StorableDelivery): Envelope {
  const { eventId, eventType, subject, aggregateKey, occurredAt, payload, invalidId } = delivery;
  const headers = Object.entries({
    ...delivery.headers,
    ...(invalidId !== undefined && { original_event_id: invalidId }),
  });
  return {
    eventId,
    eventType: toStorableText(eventType),
    subject: toStorableText(subject),
    aggregateKey: toStorableText(aggregateKey),
    occurredAt: toStorableText(occurredAt),
    headers: Object.fromEntries(headers.map(([name, value]) => [toStorableText(name), toStorableText(value)])),
    payload,
  };
}
