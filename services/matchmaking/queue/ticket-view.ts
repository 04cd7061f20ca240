/**
 * A ticket as its owner sees it. It is MATCHED, CANCELLED or EXPIRED only after that is recorded in PostgreSQL, so no response
 * is ever taken back.
 */
import type { EndedTicket } from "../store/ended-tickets.ts";
import type { OpenTicket } from "./ticket.ts";

export type TicketView = ReturnType<typeof openTicketView> | ReturnType<typeof endedTicketView>;

const formatTime = (ms: number) => new Date(ms).toISOString();

const commonFields = ({ ticketId, mode, partySize, attributes, joinedAt, expiresAt }: OpenTicket | EndedTicket) => ({
  ticket_id: ticketId,
  mode,
  party_size: partySize,
  attributes,
  joined_at: formatTime(joinedAt),
  expires_at: formatTime(expiresAt),
});

export function openTicketView(ticket: OpenTicket, estimateSeconds: number | undefined) {
  const { aliveUntil, expiresAt } = ticket;
  return {
    ...commonFields(ticket),
    status: "QUEUED" as const,
    ...(aliveUntil < expiresAt && { heartbeat_before: formatTime(aliveUntil) }),
    ...(estimateSeconds !== undefined && { estimated_wait_seconds: estimateSeconds }),
  };
}

export function endedTicketView(ticket: EndedTicket) {
  const { ticketId, mode, status, endedAt, reason, match } = ticket;
  // The queue lost the ticket, or its end is older than the retention: its other fields are made up.
  if (reason === "lost") return { ticket_id: ticketId, mode, status, reason };
  if (!match) return { ...commonFields(ticket), status, ended_at: formatTime(endedAt), ...(reason && { reason }) };
  const { matchId, team, region, session, peers } = match;
  return {
    ...commonFields(ticket),
    status,
    match_id: matchId,
    matched_at: formatTime(endedAt),
    team,
    peers: peers.map((peer) => ({ user_id: peer.userId, team: peer.team, party_size: peer.partySize })),
    session: { ...session, ...(region !== undefined && { region }) },
  };
}
