/** The client is still there. Of a ticket that has ended it hears how. */
import type { ModeRules } from "../rules/types.ts";
import { modeOf } from "../ticket-id.ts";
import { type TicketView, viewOfEnded, viewOfOpen } from "../ticket-view.ts";
import { ownTicket, settleTicket, type TicketDeps, type TicketName } from "./show-ticket.ts";

export type HeartbeatTicket = (name: TicketName) => Promise<TicketView>;

export interface HeartbeatDeps extends TicketDeps {
  readonly heartbeatMs: (mode: string) => ModeRules["heartbeatMs"];
}

export function heartbeatTicket(deps: HeartbeatDeps): HeartbeatTicket {
  return async (name) => {
    const { end } = await ownTicket(deps, name);
    if (end) return viewOfEnded(end);
    const ticket = await deps.queue.beat(name.ticketId, deps.heartbeatMs(modeOf(name.ticketId) ?? ""));
    return ticket ? viewOfOpen(ticket, await deps.estimate(ticket)) : settleTicket(deps, name);
  };
}
