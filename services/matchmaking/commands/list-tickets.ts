/** Lists the tickets of a user in all modes, open and ended ones, the last joined first. Writes nothing. */
import type { OpenTicket } from "../queue/ticket.ts";
import { endedTicketView, openTicketView, type TicketView } from "../queue/ticket-view.ts";
import { type EndedTicket, selectUserTicketEnds, type TicketPosition } from "../store/ended-tickets.ts";
import type { UserTicketDeps } from "./get-current-ticket.ts";

export interface TicketListQuery {
  readonly userId: string;
  /** Of the last ticket of the previous page. */
  readonly before?: TicketPosition | undefined;
  readonly limit: number;
}

export interface ListedTicket {
  readonly view: TicketView;
  /** The parts of a TicketPosition. */
  readonly position: string;
}

export function listTickets({ db, queue, modes, estimateWait }: UserTicketDeps) {
  return async ({ userId, before, limit }: TicketListQuery): Promise<ListedTicket[]> => {
    // The queue first: a ticket that ends between the two reads is in the second.
    const found = await queue.findOfUser({ userId, modes: modes() });
    const ended = await selectUserTicketEnds(db, { userId, before, limit });
    const endedIds = new Set(ended.map(({ ticketId }) => ticketId));
    const open = found.map(({ ticket }) => ticket).filter((ticket) => !endedIds.has(ticket.ticketId));
    const merged = [...open.filter((ticket) => isBefore(ticket, before)), ...ended].sort(newestFirst).slice(0, limit);
    return Promise.all(
      merged.map(async (ticket) => ({
        position: `${micros(ticket)} ${ticket.ticketId}`,
        view: "endedAt" in ticket ? endedTicketView(ticket) : openTicketView(ticket, await estimateWait(ticket)),
      })),
    );
  };
}

type AnyTicket = OpenTicket | EndedTicket;

const micros = ({ joinedAt }: AnyTicket) => Math.round(joinedAt * 1_000);

/** In the order of the database: by time, then by the bytes of the ID. */
const newestFirst = (a: AnyTicket, b: AnyTicket) => b.joinedAt - a.joinedAt || (a.ticketId < b.ticketId ? 1 : -1);

function isBefore(ticket: OpenTicket, before: TicketPosition | undefined): boolean {
  if (!before) return true;
  const at = micros(ticket) - Number(before.joinedAtMicros);
  return at < 0 || (at === 0 && ticket.ticketId < before.ticketId);
}
