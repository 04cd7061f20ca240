/**
 * A ticket as it is. PostgreSQL's record of its end decides, whatever the queue believes.
 *
 * To show a ticket writes nothing. A ticket that is over and that nobody has ended yet is still QUEUED, until a matcher ends it.
 * A ticket that neither PostgreSQL nor the queue knows was lost with the queue: its owner is told so, and joins again. Only a
 * request that may write (cancel, heartbeat) records that it is lost; from then on no match of it can be recorded.
 */
import type { Db } from "@todoke/kernel/db";
import { ticketLost, ticketNotFound } from "../problems.ts";
import type { Found, TicketQueue } from "../queue/index.ts";
import { type EndedTicket, recordLost, selectTicketEnd } from "../store/ends.ts";
import { modeOf, type TicketIds } from "../ticket-id.ts";
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
  readonly ids: Pick<TicketIds, "isOwn">;
  /** How long the ticket may have to wait yet, in seconds. */
  readonly estimate: (ticket: OpenTicket) => Promise<number | undefined>;
}

/** What is stored of a ticket: its end, or what the queue has; neither of a lost one. */
interface KnownTicket {
  readonly end?: EndedTicket | undefined;
  readonly found?: Found | undefined;
}

/**
 * Throws `ticketNotFound` unless the ticket is the caller's. Whose a stored ticket is, its row says; only where nothing is
 * stored does the ID have to prove it.
 */
export async function ownTicket({ db, queue, ids }: TicketDeps, name: TicketName): Promise<KnownTicket> {
  const { ticketId, userId } = name;
  const early = await selectTicketEnd(db, ticketId);
  const found = early ? undefined : await queue.find(ticketId);
  // It may have left the queue, and been recorded, between the two reads.
  const end = early ?? (found ? undefined : await selectTicketEnd(db, ticketId));
  const owner = end?.userId ?? found?.ticket.userId;
  const isOwn = owner === undefined ? ids.isOwn(ticketId, userId) : owner === userId;
  if (!isOwn) throw ticketNotFound("no ticket of the caller has this id");
  return { end, found };
}

export function showTicket(deps: TicketDeps): ShowTicket {
  return async (name) => {
    const { end, found } = await ownTicket(deps, name);
    if (end) return viewOfEnded(end);
    if (found) return viewOfOpen(found.ticket, await deps.estimate(found.ticket));
    throw ticketLost("the queue came back without it, or it ended too long ago; join again");
  };
}

/** The caller's ticket, for requests that may write: ended first if it is over, and recorded as lost if nothing knows it. */
export async function settleTicket({ db, queue, estimate }: TicketDeps, name: TicketName): Promise<TicketView> {
  const { ticketId } = name;
  const found = await queue.find(ticketId);
  if (found && found.status !== "EXPIRED") return viewOfOpen(found.ticket, await estimate(found.ticket));
  // If a match of it is about to be recorded, the ticket ends by the match.
  if (found) await queue.cancel(ticketId);
  const end = await selectTicketEnd(db, ticketId);
  return viewOfEnded(end ?? (await recordLost(db, { ...name, mode: modeOf(ticketId) ?? "" })));
}
