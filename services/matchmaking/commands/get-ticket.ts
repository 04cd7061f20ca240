/**
 * Gets a ticket. Writes nothing: an expired ticket is QUEUED until a matcher ends it, and a lost one is 404 until a cancel or
 * a heartbeat records that it is lost.
 */
import { ticketLost } from "../problems.ts";
import { endedTicketView, openTicketView, type TicketView } from "../queue/ticket-view.ts";
import { findOwnTicket, type OwnTicketId, type TicketDeps } from "./find-own-ticket.ts";

export function getTicket(deps: TicketDeps) {
  return async (own: OwnTicketId): Promise<TicketView> => {
    const { end, found } = await findOwnTicket(deps, own);
    if (end) return endedTicketView(end);
    if (found) return openTicketView(found.ticket, await deps.estimateWait(found.ticket));
    throw ticketLost("The queue lost this ticket, or it ended too long ago. Join again.");
  };
}
