/** The fields that all events of this service share. */
import { randomUUIDv7 } from "node:crypto";
import type { NewEvent } from "@todoke/kernel/outbox";
import { traceHeaders } from "@todoke/kernel/telemetry";

interface EventContent {
  readonly aggregateKey: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly fields: object;
}

/** A match or an ended ticket never changes again, so its version is always 1. */
export function newEvent(eventType: "MatchMade" | "TicketExpired", content: EventContent): NewEvent {
  const { aggregateKey, at, fields } = content;
  const eventId = randomUUIDv7();
  const { trace_id } = traceHeaders();
  const occurredAt = new Date(at).toISOString();
  const shared = { event_id: eventId, event_type: eventType, occurred_at: occurredAt, version: "1" };
  const payload = { ...shared, ...fields, ...(trace_id !== undefined && { trace_id }) };
  return { eventId, eventType, subject: "matchmaking.events", aggregateKey, version: 1, payload, occurredAt };
}
