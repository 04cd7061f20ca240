/** Builds `TicketExpired`: one event per expired ticket. */
import type { NewEvent } from "@todoke/kernel/outbox";
import type { TicketEnd } from "../queue/ticket.ts";
import { newEvent } from "./new-event.ts";

export function ticketExpired({ ticket, reason, endedAt }: Extract<TicketEnd, { kind: "expired" }>): NewEvent {
  const { ticketId, mode, userId } = ticket;
  const fields = { user_id: userId, ticket_id: ticketId, mode, reason };
  return newEvent("TicketExpired", { aggregateKey: ticketId, at: endedAt, fields });
}
