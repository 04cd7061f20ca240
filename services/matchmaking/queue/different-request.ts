/** The refusal of a join, in the same words for every queue. */
import { ticketOpen } from "../problems.ts";

export const differentRequest = (openTicketId: string) =>
  ticketOpen(
    `Ticket ${openTicketId} is open with another party size or other attributes. Cancel it before you join with these.`,
  );
