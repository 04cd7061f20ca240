/** Builds the events of this service: `MatchMade`, one per match, and `TicketExpired`, one per expired ticket. */
import { randomUUIDv7 } from "node:crypto";
import type { NewEvent } from "@todoke/kernel/outbox";
import { traceHeaders } from "@todoke/kernel/telemetry";
import type { Match, TicketEnd } from "../queue/ticket.ts";

export function matchMade({ matchId, mode, region, matchedAt, seats }: Match): NewEvent {
  const players = seats.map(({ ticket, team }) => ({
    user_id: ticket.userId,
    ticket_id: ticket.ticketId,
    team,
    party_size: ticket.partySize,
  }));
  const fields = { match_id: matchId, mode, players, ...(region !== undefined && { region }) };
  return newEvent("MatchMade", { aggregateKey: matchId, at: matchedAt, fields });
}

export function ticketExpired({ ticket, reason, endedAt }: Extract<TicketEnd, { kind: "expired" }>): NewEvent {
  const { ticketId, mode, userId } = ticket;
  const fields = { user_id: userId, ticket_id: ticketId, mode, reason };
  return newEvent("TicketExpired", { aggregateKey: ticketId, at: endedAt, fields });
}

interface EventContent {
  readonly aggregateKey: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly fields: object;
}

/** A match or an ended ticket never changes again, so its version is always 1. */
function newEvent(eventType: "MatchMade" | "TicketExpired", { aggregateKey, at, fields }: EventContent): NewEvent {
  const eventId = randomUUIDv7();
  const { trace_id } = traceHeaders();
  const occurredAt = new Date(at).toISOString();
  const shared = { event_id: eventId, event_type: eventType, occurred_at: occurredAt, version: "1" };
  const payload = { ...shared, ...fields, ...(trace_id !== undefined && { trace_id }) };
  return { eventId, eventType, subject: "matchmaking.events", aggregateKey, version: 1, payload, occurredAt };
}
