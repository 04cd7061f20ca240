/** Finds a ticket of the caller. The recorded end decides; the state in the queue counts only if there is none. */
import type { Db } from "@todoke/kernel/db";
import { ticketNotFound } from "../problems.ts";
import type { FoundTicket, TicketQueue } from "../queue/index.ts";
import type { OpenTicket } from "../queue/ticket.ts";
import type { TicketIds } from "../queue/ticket-id.ts";
import { type EndedTicket, selectTicketEnd } from "../store/ended-tickets.ts";

export interface OwnTicketId {
  readonly ticketId: string;
  readonly userId: string;
}

export interface TicketDeps {
  readonly db: Db;
  readonly queue: Pick<TicketQueue, "find" | "cancel" | "heartbeat">;
  readonly ids: Pick<TicketIds, "isOwn">;
  /** The remaining wait in seconds. */
  readonly estimateWait: (ticket: OpenTicket) => Promise<number | undefined>;
}

/** A lost ticket has neither. */
interface StoredTicket {
  readonly end?: EndedTicket | undefined;
  readonly found?: FoundTicket | undefined;
}

/**
 * Throws `ticketNotFound` unless the ticket is the caller's. A stored ticket names its owner; only if nothing is stored must
 * the ID prove it.
 */
export async function findOwnTicket({ db, queue, ids }: TicketDeps, own: OwnTicketId): Promise<StoredTicket> {
  const { ticketId, userId } = own;
  const early = await selectTicketEnd(db, ticketId);
  const found = early ? undefined : await queue.find(ticketId);
  // The ticket may have left the queue and been recorded between the two reads.
  const end = early ?? (found ? undefined : await selectTicketEnd(db, ticketId));
  const owner = end?.userId ?? found?.ticket.userId;
  const isOwn = owner === undefined ? ids.isOwn(ticketId, userId) : owner === userId;
  if (!isOwn) throw ticketNotFound("The caller has no ticket with this ID.");
  return { end, found };
}
