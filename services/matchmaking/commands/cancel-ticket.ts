/** Takes a ticket back. Against a match that is being made at the same moment exactly one of the two wins. */
import { ticketMatched } from "../problems.ts";
import { type TicketView, viewOfEnded } from "../ticket-view.ts";
import { ownTicket, settleTicket, type TicketDeps, type TicketName } from "./show-ticket.ts";

/** The ticket as it is afterwards: CANCELLED, by this or before; or EXPIRED already. */
export type CancelTicket = (name: TicketName) => Promise<TicketView>;

export function cancelTicket(deps: TicketDeps): CancelTicket {
  return async (name) => {
    const { end } = await ownTicket(deps, name);
    const status = end?.status ?? (await deps.queue.cancel(name.ticketId));
    if (status === "MATCHED") throw ticketMatched("the match is made; the ticket shows with whom");
    return end ? viewOfEnded(end) : settleTicket(deps, name);
  };
}
