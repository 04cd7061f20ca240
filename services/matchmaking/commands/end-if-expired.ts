/** Ends the caller's ticket if it is expired, and records it as lost if it is unknown. Returns it as it is afterwards. */

import { parseMode } from "../queue/ticket-id.ts";
import { endedTicketView, openTicketView, type TicketView } from "../queue/ticket-view.ts";
import { selectTicketEnd } from "../store/ended-tickets.ts";
import { insertLost } from "../store/ends.ts";
import type { OwnTicketId, TicketDeps } from "./find-own-ticket.ts";

export async function endIfExpired(deps: TicketDeps, { ticketId, userId }: OwnTicketId): Promise<TicketView> {
  const { db, queue, estimateWait } = deps;
  const found = await queue.find(ticketId);
  if (found && found.status !== "EXPIRED") return openTicketView(found.ticket, await estimateWait(found.ticket));
  // If a match of the ticket is about to be recorded, the ticket ends by that match.
  if (found) await queue.cancel(ticketId);
  const end = await selectTicketEnd(db, ticketId);
  if (end) return endedTicketView(end);
  // Once this row exists, a match of the ticket that a recorder still holds cannot be recorded. The user has the response,
  // so there is no event. If the recorder was first, its end stands.
  await insertLost(db, { ticketId, userId, mode: parseMode(ticketId) ?? "" });
  const recorded = await selectTicketEnd(db, ticketId);
  if (!recorded) throw new Error(`the end of ticket ${ticketId} was inserted and is missing`);
  return endedTicketView(recorded);
}
