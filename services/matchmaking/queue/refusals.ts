/** The refusals of a join, in the same words for every queue. */
import { idempotencyConflict } from "@todoke/kernel/idempotency";
import { ticketOpen } from "../problems.ts";

export const keyConflict = () =>
  idempotencyConflict("This Idempotency-Key was first used with another request. Use a new key for a new ticket.");

export const differentRequest = (openTicketId: string) =>
  ticketOpen(
    `Ticket ${openTicketId} is open with another party size or other attributes. Cancel it before you join with these.`,
  );
