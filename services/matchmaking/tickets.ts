/**
 * A ticket and the ways in which it ends.
 *
 *   QUEUED -> MATCHED | CANCELLED | EXPIRED, once, and never back.
 *
 * Open tickets wait in a queue (queue/), in Redis or in PostgreSQL. Every end is kept in PostgreSQL (store/ends.ts), where
 * the primary key of `ticket_ends` is what makes a ticket end once, whatever the queue believes.
 */

/** What a client says of itself, by names that the rules may ask for. Bounded by the edge. */
export type Attributes = Readonly<Record<string, AttributeValue>>;
export type AttributeValue =
  | string
  | number
  | boolean
  | readonly string[]
  /** Milliseconds to each region, say. */
  | Readonly<Record<string, number>>;

export interface OpenTicket {
  /** Names its mode, and proves whose it is: see ticket-id.ts. */
  readonly ticketId: string;
  readonly mode: string;
  readonly userId: string;
  /** Players that it stands for; they stay together. */
  readonly partySize: number;
  readonly attributes: Attributes;
  /** Users that it is not to meet, as its mode wants it. */
  readonly avoid: readonly string[];
  /** Milliseconds since 1970 by the queue's clock, as all times of open tickets. */
  readonly joinedAt: number;
  readonly expiresAt: number;
  /** When it counts as left behind unless its client is heard of; `expiresAt` where its mode asks for no heartbeat. */
  readonly aliveUntil: number;
}

/** What holds for every match of a round, and is written down with it. */
export interface MatchTerms {
  readonly rulesVersion: string;
  /** What the mode's rules tell players about where to play. */
  readonly session: Readonly<Record<string, unknown>>;
}

export interface Seat {
  readonly ticket: OpenTicket;
  /** From 1 on. */
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
 * `timeout`: its time was up. `heartbeat`: its client was not heard of. `replaced`: its user had a newer one by then.
 * `lost`: the queue came back without it, and its user was told so.
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
  /** What lay in the queue and is no ticket: set aside, for somebody to look at. */
  | {
      readonly kind: "damaged";
      readonly mode: string;
      readonly ticketId: string;
      readonly raw: string;
      readonly why: string;
      readonly endedAt: number;
    };
