/** The events of this service, as they follow from the ends of tickets. */
import { randomUUIDv7 } from "node:crypto";
import type { NewEvent } from "@todoke/kernel/outbox";
import { traceHeaders } from "@todoke/kernel/telemetry";
import type { Match, TicketEnd } from "../tickets.ts";

const subject = "matchmaking.events";

/** None of a cancelled ticket, whose user has the answer, and none of what never was a ticket. */
export function eventsOf(ends: readonly TicketEnd[]): NewEvent[] {
  return ends.flatMap((end) => {
    if (end.kind === "match") return [matchMade(end.match)];
    return end.kind === "expired" ? [ticketExpired(end)] : [];
  });
}

function matchMade({ matchId, mode, matchedAt, seats, region }: Match): NewEvent {
  const players = seats.map(({ ticket, team }) => ({
    user_id: ticket.userId,
    ticket_id: ticket.ticketId,
    team,
    party_size: ticket.partySize,
  }));
  const said = { match_id: matchId, mode, players, ...(region !== undefined && { region }) };
  return newEvent("MatchMade", { aggregateKey: matchId, at: matchedAt, said });
}

function ticketExpired({ ticket, reason, endedAt }: Extract<TicketEnd, { kind: "expired" }>): NewEvent {
  const { ticketId, mode, userId } = ticket;
  const said = { user_id: userId, ticket_id: ticketId, mode, reason };
  return newEvent("TicketExpired", { aggregateKey: ticketId, at: endedAt, said });
}

interface Said {
  readonly aggregateKey: string;
  readonly at: number;
  readonly said: object;
}

/** What it is about never changes again, so its version is the first and the last. */
function newEvent(eventType: "MatchMade" | "TicketExpired", { aggregateKey, at, said }: Said): NewEvent {
  const eventId = randomUUIDv7();
  const { trace_id } = traceHeaders();
  const occurredAt = new Date(at).toISOString();
  const head = { event_id: eventId, event_type: eventType, occurred_at: occurredAt, version: "1" };
  const payload = { ...head, ...said, ...(trace_id !== undefined && { trace_id }) };
  return { eventId, eventType, subject, aggregateKey, version: 1, payload, occurredAt };
}
