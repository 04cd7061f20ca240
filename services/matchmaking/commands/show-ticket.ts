/**
 * A ticket as it is. What PostgreSQL has on record is the end of it, whatever the queue believes; what neither of the two
 * knows was lost with the queue, and its owner is told so: the same call joins again.
 */
import type { Db } from "@todoke/kernel/db";
import { ticketNotFound } from "../problems.ts";
import type { TicketQueue } from "../queue/index.ts";
import { type EndedTicket, recordLost, selectTicketEnd } from "../store/ends.ts";
import { isOwnTicket, modeOf } from "../ticket-id.ts";
import { type TicketView, viewOfEnded, viewOfOpen } from "../ticket-view.ts";
import type { OpenTicket } from "../tickets.ts";

export interface TicketName {
  readonly ticketId: string;
  readonly userId: string;
}

export type ShowTicket = (name: TicketName) => Promise<TicketView>;

export interface TicketDeps {
  readonly db: Db;
  readonly queue: Pick<TicketQueue, "find" | "cancel" | "beat">;
  /** How long the ticket may have to wait yet, in seconds. */
  readonly estimate: (ticket: OpenTicket) => Promise<number | undefined>;
}

/** How the ticket ended, if it did. Whoever it does not belong to hears that there is none. */
export async function ownTicketEnd(db: Db, { ticketId, userId }: TicketName): Promise<EndedTicket | undefined> {
  if (!isOwnTicket(ticketId, userId)) throw ticketNotFound("no ticket of the caller has this id");
  return selectTicketEnd(db, ticketId);
}

export function showTicket({ db, queue, estimate }: TicketDeps): ShowTicket {
  return async (name) => {
    const { ticketId } = name;
    const mode = modeOf(ticketId) ?? "";
    const end = await ownTicketEnd(db, name);
    if (end) return viewOfEnded(end);
    const found = await queue.find(ticketId);
    if (found && found.status !== "EXPIRED") return viewOfOpen(found.ticket, await estimate(found.ticket));
    // Its time is over, and nobody has ended it yet. Or a match of it is about to be on record: then that is how it ends.
    if (found) await queue.cancel(ticketId);
    // It may have been put on record between the two looks.
    const late = await selectTicketEnd(db, ticketId);
    return viewOfEnded(late ?? (await recordLost(db, { ...name, mode })));
  };
}
