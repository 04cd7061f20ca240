/**
 * A ticket and its possible ends.
 *
 *   QUEUED -> MATCHED | CANCELLED | EXPIRED, once.
 *
 * Open tickets wait in a queue (queue/), in Redis or in PostgreSQL. Every end is recorded in PostgreSQL, where the primary
 * key of `ticket_ends` makes sure that a ticket ends once, even if Redis loses data.
 */
import type { Attributes } from "@todoke/contracts/api";

export type { Attributes, AttributeValue } from "@todoke/contracts/api";

export interface OpenTicket {
  /** Contains its mode and a proof of its owner: see ticket-id.ts. */
  readonly ticketId: string;
  readonly mode: string;
  readonly userId: string;
  /** Players on the ticket; they stay together. */
  readonly partySize: number;
  readonly attributes: Attributes;
  /** Users that this ticket must not be matched with, if its mode has such a rule. */
  readonly avoid: readonly string[];
  /** Milliseconds since 1970 by the queue's clock, like all times of open tickets. */
  readonly joinedAt: number;
  readonly expiresAt: number;
  /** When it expires without another heartbeat; equals `expiresAt` if its mode requires none. */
  readonly aliveUntil: number;
}

/** Recorded with every match of a round. */
export interface MatchTerms {
  readonly rulesVersion: string;
  /** From the mode's rules: tells players where to play. */
  readonly session: Readonly<Record<string, unknown>>;
}

export interface Seat {
  readonly ticket: OpenTicket;
  /** The first team is 1. */
  readonly team: number;
}

export interface Match extends MatchTerms {
  /** UUID v7. */
  readonly matchId: string;
  readonly mode: string;
  readonly region?: string;
  readonly matchedAt: number;
  readonly seats: readonly Seat[];
}

/**
 * `timeout`: it reached its end time. `heartbeat`: no heartbeat arrived in time. `replaced`: its user has a newer ticket.
 * `lost`: the queue lost it.
 */
export type ExpiryReason = "timeout" | "heartbeat" | "replaced" | "lost";

export type TicketEnd =
  | { readonly kind: "match"; readonly match: Match }
  | {
      readonly kind: "expired";
      readonly ticket: OpenTicket;
      readonly reason: ExpiryReason;
      readonly endedAt: number;
    }
  | { readonly kind: "cancelled"; readonly ticket: OpenTicket; readonly endedAt: number }
  /** Data in the queue that is not a valid ticket. It is quarantined in `damaged_tickets`. */
  | {
      readonly kind: "damaged";
      readonly mode: string;
      readonly ticketId: string;
      readonly raw: string;
      readonly why: string;
      readonly endedAt: number;
    };
