/**
 * A ticket as its owner sees it. It is MATCHED, CANCELLED or EXPIRED when PostgreSQL has that on record, and not before,
 * whatever the queue knows by then: so no answer is ever taken back.
 */
import type { EndedTicket } from "./store/ends.ts";
import type { Attributes, OpenTicket } from "./tickets.ts";

export interface TicketView {
  readonly ticket_id: string;
  readonly mode: string;
  readonly status: "QUEUED" | "MATCHED" | "CANCELLED" | "EXPIRED";
  readonly party_size?: number;
  readonly attributes?: Attributes;
  readonly joined_at?: string;
  readonly expires_at?: string;
  /** Of a QUEUED one. */
  readonly heartbeat_before?: string;
  readonly estimated_wait_seconds?: number;
  /** Of a MATCHED one. */
  readonly match_id?: string;
  readonly matched_at?: string;
  readonly team?: number;
  readonly peers?: { readonly user_id: string; readonly team: number; readonly party_size: number }[];
  readonly session?: Readonly<Record<string, unknown>>;
  /** Of one that has ended otherwise. */
  readonly ended_at?: string;
  readonly reason?: string;
}

const time = (ms: number) => new Date(ms).toISOString();

const about = ({ ticketId, mode, partySize, attributes, joinedAt, expiresAt }: OpenTicket | EndedTicket) => ({
  ticket_id: ticketId,
  mode,
  party_size: partySize,
  attributes,
  joined_at: time(joinedAt),
  expires_at: time(expiresAt),
});

export function viewOfOpen(ticket: OpenTicket, estimateSeconds: number | undefined): TicketView {
  const { aliveUntil, expiresAt } = ticket;
  return {
    ...about(ticket),
    status: "QUEUED",
    ...(aliveUntil < expiresAt && { heartbeat_before: time(aliveUntil) }),
    ...(estimateSeconds !== undefined && { estimated_wait_seconds: estimateSeconds }),
  };
}

export function viewOfEnded(ticket: EndedTicket): TicketView {
  const { status, endedAt, reason, match } = ticket;
  if (reason === "lost") return viewOfLost(ticket);
  if (!match) return { ...about(ticket), status, ended_at: time(endedAt), ...(reason && { reason }) };
  const { matchId, team, region, session, peers } = match;
  return {
    ...about(ticket),
    status,
    match_id: matchId,
    matched_at: time(endedAt),
    team,
    peers: peers.map((peer) => ({ user_id: peer.userId, team: peer.team, party_size: peer.partySize })),
    session: { ...session, ...(region !== undefined && { region }) },
  };
}

/** The queue came back without it, or it ended longer ago than ends are kept. No more is known of it. */
const viewOfLost = ({ ticketId, mode }: EndedTicket): TicketView => ({
  ticket_id: ticketId,
  mode,
  status: "EXPIRED",
  reason: "lost",
});
