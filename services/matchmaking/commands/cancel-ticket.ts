/** Takes a ticket back. Against a match that is being made at the same moment exactly one of the two wins. */
import { ticketMatched } from "../problems.ts";
import type { TicketView } from "../ticket-view.ts";
import { ownTicketEnd, showTicket, type TicketDeps, type TicketName } from "./show-ticket.ts";

/** The ticket as it is afterwards: CANCELLED, by this or before; or EXPIRED already. */
export type CancelTicket = (name: TicketName) => Promise<TicketView>;

export function cancelTicket(deps: TicketDeps): CancelTicket {
  const show = showTicket(deps);
  return async (name) => {
    const end = await ownTicketEnd(deps.db, name);
    const status = end?.status ?? (await deps.queue.cancel(name.ticketId));
    if (status === "MATCHED") throw ticketMatched("the match is made; the ticket shows with whom");
    return show(name);
  };
}
