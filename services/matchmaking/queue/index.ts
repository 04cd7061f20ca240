/**
 * The queue port: where open tickets wait. Two adapters, redis/ and postgres/, pass one conformance suite.
 *
 * Guarantees of both:
 *  - a user has at most one open ticket in a mode;
 *  - a ticket ends once: of a cancel, a match and an expiry at the same time, exactly one takes effect;
 *  - an expired ticket is never matched; the queue's own clock decides, not the clock of a process;
 *  - every end reaches PostgreSQL with its event (record-ends.ts), even if the process crashes right after it;
 *  - damaged data is quarantined and blocks no other ticket.
 */
import type { Tx } from "@todoke/kernel/db";
import type { IdempotencyKey } from "@todoke/kernel/idempotency";
import type { MatchTerms, OpenTicket } from "./ticket.ts";

export interface TicketRequest extends Pick<OpenTicket, "mode" | "userId" | "partySize" | "attributes" | "avoid"> {
  /** Stored with the ticket's data for 24 hours. */
  readonly key: IdempotencyKey;
  readonly ticketMs: number;
  /** The longest time between two heartbeats; undefined if none are required. */
  readonly heartbeatMs?: number;
}

/** `new`: created by this request. `open`: the user's open ticket, which an earlier request created. */
export interface JoinedTicket {
  readonly kind: "new" | "open";
  readonly ticketId: string;
  readonly expiresAt: number;
  /** The key was used before, and this is the stored result. The ticket may have ended since. */
  readonly replayed: boolean;
}

/** A ticket whose end is not recorded yet. Any status but QUEUED: it has ended and is about to be recorded. */
export interface FoundTicket {
  readonly ticket: OpenTicket;
  readonly status: "QUEUED" | "MATCHED" | "CANCELLED" | "EXPIRED";
}

export interface Proposal {
  readonly seats: readonly { readonly ticketId: string; readonly team: number }[];
  readonly region?: string;
}

export interface Snapshot {
  /** In join order. If there are more tickets than the limit: the oldest, the newest and some in between. */
  readonly tickets: readonly OpenTicket[];
  /** By the queue's clock. */
  readonly now: number;
}

export interface QueueStatus {
  readonly waiting: number;
  /** Age of the oldest waiting ticket. */
  readonly oldestMs?: number;
}

export interface SweepResult extends QueueStatus {
  readonly expired: number;
  readonly damaged: number;
  /** Time until the next ticket expires if no heartbeat arrives. */
  readonly nextEndMs?: number;
}

export interface TicketQueue extends AsyncDisposable {
  /**
   * Rejects with `idempotencyConflict` if the key was used with another request, and with `ticketOpen` if the user has an
   * open ticket in this mode with another party size or other attributes.
   */
  join(request: TicketRequest): Promise<JoinedTicket>;
  find(ticketId: string): Promise<FoundTicket | undefined>;
  /**
   * The user's last ticket in each mode, if its end is not recorded yet. Read the recorded ends afterwards: a ticket that
   * ends in between is in one of the two reads.
   */
  findOfUser(user: UserInModes): Promise<readonly FoundTicket[]>;
  /**
   * Returns the status after the call, once PostgreSQL has it. MATCHED: the match was first. Undefined: the ticket is
   * unknown.
   */
  cancel(ticketId: string): Promise<"CANCELLED" | "MATCHED" | "EXPIRED" | undefined>;
  /**
   * Cancels the waiting tickets of these users in these modes. They are recorded when the transaction commits. If it rolls
   * back, those that have left the queue are recorded all the same. Uses no other connection, so that a caller with a
   * transaction cannot wait for itself.
   */
  cancelForUsers(tx: Tx, users: UsersInModes): Promise<void>;
  /** Returns undefined if the ticket is not QUEUED. */
  heartbeat(ticketId: string, heartbeatMs: number | undefined): Promise<OpenTicket | undefined>;

  /**
   * Matches the oldest tickets, `players` each, in join order and atomically, up to `matchesMax` matches. Each ticket gets a
   * team of its own. Parties are skipped because a team has one player; only earlier rules can have let them in.
   */
  matchFifo(mode: string, round: FifoRound): Promise<{ readonly made: number }>;
  snapshot(mode: string, ticketsMax: number): Promise<Snapshot>;
  /** Makes each match that is still possible, whole or not at all, in input order. */
  commitProposals(mode: string, proposals: readonly Proposal[], terms: MatchTerms): Promise<{ readonly made: number }>;
  /** Returns whether this process should form matches in the mode. Avoids double work; correctness does not need it. */
  acquireFormingLease(mode: string, leaseMs: number): Promise<boolean>;

  /** Only reads. */
  status(mode: string): Promise<QueueStatus>;
  /** Ends expired tickets, up to a bound. */
  sweep(mode: string): Promise<SweepResult>;
}

interface UserInModes {
  readonly userId: string;
  readonly modes: readonly string[];
}

interface UsersInModes {
  readonly userIds: readonly string[];
  readonly modes: readonly string[];
}

export interface FifoRound extends MatchTerms {
  readonly players: number;
  readonly matchesMax: number;
}
