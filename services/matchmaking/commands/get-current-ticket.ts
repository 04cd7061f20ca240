/** Gets what a user waits for or plays: the open ticket, else the ticket of the latest match. Writes nothing. */
import { createBatcher } from "@todoke/kernel/batcher";
import type { TicketQueue } from "../queue/index.ts";
import { endedTicketView, type TicketView } from "../queue/ticket-view.ts";
import { type EndedTicket, selectLastMatches } from "../store/ended-tickets.ts";
import type { TicketDeps } from "./find-own-ticket.ts";
import { getTicket } from "./get-ticket.ts";

export interface UserTicketDeps extends TicketDeps {
  readonly queue: TicketDeps["queue"] & Pick<TicketQueue, "findOfUser">;
  /** The modes that may have tickets. */
  readonly modes: () => readonly string[];
}

export function getCurrentTicket(deps: UserTicketDeps) {
  const { db, queue, modes } = deps;
  const get = getTicket(deps);
  const findLastMatch = createBatcher<string, EndedTicket | null>({ run: (userIds) => selectLastMatches(db, userIds) });
  return async (userId: string): Promise<TicketView | undefined> => {
    const found = await queue.findOfUser({ userId, modes: modes() });
    for (const { ticket } of found.toSorted((a, b) => b.ticket.joinedAt - a.ticket.joinedAt)) {
      // It may have ended since, or Redis may have lost its end.
      const view = await get({ ticketId: ticket.ticketId, userId });
      if (view.status === "QUEUED" || view.status === "MATCHED") return view;
    }
    const last = await findLastMatch(userId);
    return last ? endedTicketView(last) : undefined;
  };
}
