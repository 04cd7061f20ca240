/**
 * Where open tickets wait. One port, two adapters, one conformance suite: Redis (redis/) and PostgreSQL (postgres/).
 *
 * Promises of both:
 *  - a user has one open ticket in a mode at the most;
 *  - what ends a ticket ends it once: of a cancel, a match and an expiry at the same moment exactly one wins;
 *  - a ticket whose time is up, or whose client was not heard of, is never matched: the queue's own clock decides, and
 *    not a process';
 *  - whatever ends reaches PostgreSQL (store/ends.ts) with its event, also when the process dies right after;
 *  - what is damaged is set aside and blocks nobody.
 */
import type { Tx } from "@todoke/kernel/db";
import type { IdempotencyKey } from "@todoke/kernel/idempotency";
import type { Attributes, MatchTerms, OpenTicket } from "../tickets.ts";

export interface JoinWish {
  /** The same key and the same wish: the same ticket. Kept for 24 hours, where the ticket is kept. */
  readonly key: IdempotencyKey;
  readonly mode: string;
  readonly userId: string;
  readonly partySize: number;
  readonly attributes: Attributes;
  readonly avoid: readonly string[];
  readonly ticketMs: number;
  /** How often the client has to be heard of; undefined: it need not. */
  readonly heartbeatMs?: number;
}

/** `new`: it waits from now on. `open`: the user's open ticket with this wish, there before. */
export interface Joined {
  readonly kind: "new" | "open";
  readonly ticketId: string;
  readonly expiresAt: number;
  /** The key was seen before, and this is what was answered then, whatever became of the ticket since. */
  readonly replayed: boolean;
}

/** What is known of a ticket that has no end on record yet. MATCHED: taken, and on its way to be recorded. */
export interface Found {
  readonly ticket: OpenTicket;
  readonly status: "QUEUED" | "MATCHED" | "CANCELLED" | "EXPIRED";
}

export interface Proposal {
  readonly seats: readonly { readonly ticketId: string; readonly team: number }[];
  readonly region?: string;
}

export interface Snapshot {
  /** In the order of their joining. All of them, up to the number asked for; of more, the oldest, the newest and some between. */
  readonly tickets: readonly OpenTicket[];
  /** By the queue's clock. */
  readonly now: number;
}

interface Standing {
  readonly waiting: number;
  /** How long the oldest ticket has waited. */
  readonly oldestMs?: number;
}

export interface Swept extends Standing {
  readonly expired: number;
  readonly damaged: number;
  /** In how long the next ticket will be over unless its client is heard of. */
  readonly nextEndMs?: number;
}

export interface TicketQueue extends AsyncDisposable {
  /**
   * Refuses with `idempotencyConflict` where the key came with another wish before, and with `ticketOpen` where the user
   * has an open ticket with another wish in this mode.
   */
  join(wish: JoinWish): Promise<Joined>;
  find(ticketId: string): Promise<Found | undefined>;
  /**
   * The state in which it is after this. CANCELLED only once PostgreSQL has it on record; MATCHED: it was too late.
   * Undefined: there is no such ticket here.
   */
  cancel(ticketId: string): Promise<"CANCELLED" | "MATCHED" | "EXPIRED" | undefined>;
  /**
   * Cancels what waits for any of these users in any of these modes; what was matched before stays so. On record when the
   * transaction commits. If it does not, what had left the queue by then reaches PostgreSQL all the same, as every end does.
   * Needs no other connection: whoever holds a transaction may wait for this one.
   */
  cancelAllOf(tx: Tx, users: UsersInModes): Promise<void>;
  /** The client was heard of. Undefined where the ticket is not QUEUED any more. */
  beat(ticketId: string, heartbeatMs: number | undefined): Promise<OpenTicket | undefined>;

  /**
   * Matches those who have waited longest, `players` each, the next who have waited longest with each other, and so on:
   * atomically, up to `matchesMax`. Each has a team of its own. A party, which only rules of another day can have let in, is
   * passed over: it would fill more than a team.
   */
  matchInOrder(mode: string, round: InOrder): Promise<{ readonly made: number }>;
  snapshot(mode: string, ticketsMax: number): Promise<Snapshot>;
  /** Makes each match that is still possible, whole or not at all, in the order given; the rest were too late. */
  settle(mode: string, proposals: readonly Proposal[], terms: MatchTerms): Promise<{ readonly made: number }>;
  /** Whether this process may form matches in the mode for so long. Spares work; nothing depends on it. */
  holdForming(mode: string, forMs: number): Promise<boolean>;

  /** How the queue stands. Writes nothing. */
  standing(mode: string): Promise<Standing>;
  /** Ends what is over, up to a bound, and tells how the queue stands. */
  sweep(mode: string): Promise<Swept>;
}

export interface UsersInModes {
  readonly userIds: readonly string[];
  readonly modes: readonly string[];
}

export interface InOrder extends MatchTerms {
  readonly players: number;
  readonly matchesMax: number;
}
