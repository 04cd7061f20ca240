/** Keeps a ticket alive. An ended ticket is returned as it is. */

import { parseMode } from "../queue/ticket-id.ts";
import { endedTicketView, openTicketView, type TicketView } from "../queue/ticket-view.ts";
import type { ModeRules } from "../rules/types.ts";
import { endIfExpired } from "./end-if-expired.ts";
import { findOwnTicket, type OwnTicketId, type TicketDeps } from "./find-own-ticket.ts";

export interface HeartbeatDeps extends TicketDeps {
  readonly heartbeatMs: (mode: string) => ModeRules["heartbeatMs"];
}

export function heartbeatTicket(deps: HeartbeatDeps) {
  return async (own: OwnTicketId): Promise<TicketView> => {
    const { end } = await findOwnTicket(deps, own);
    if (end) return endedTicketView(end);
    const ticket = await deps.queue.heartbeat(own.ticketId, deps.heartbeatMs(parseMode(own.ticketId) ?? ""));
    return ticket ? openTicketView(ticket, await deps.estimateWait(ticket)) : endIfExpired(deps, own);
  };
}
