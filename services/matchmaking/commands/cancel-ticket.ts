/** Cancels a ticket. If a cancel and a match happen at the same time, exactly one takes effect. */
import { ticketMatched } from "../problems.ts";
import { endedTicketView, type TicketView } from "../queue/ticket-view.ts";
import { endIfExpired } from "./end-if-expired.ts";
import { findOwnTicket, type OwnTicketId, type TicketDeps } from "./find-own-ticket.ts";

/** Returns the ticket afterwards: CANCELLED, by this request or an earlier one, or EXPIRED. */
export function cancelTicket(deps: TicketDeps) {
  return async (own: OwnTicketId): Promise<TicketView> => {
    const { end } = await findOwnTicket(deps, own);
    const status = end?.status ?? (await deps.queue.cancel(own.ticketId));
    if (status === "MATCHED") throw ticketMatched("The match was made first. Get the ticket to see the match.");
    return end ? endedTicketView(end) : endIfExpired(deps, own);
  };
}
