/** What the ledger knows of a user, as far as the changes at hand need it. Amounts are bigint, whole and exact. */

/** RFC 3339, UTC, to the millisecond: "2026-01-15T01:00:00.000Z". All are equally long, so they compare as text. */
export type Time = string;

/** The largest amount, and the most that a user can have, held points included: 2^63 - 1. */
export const pointsMax = 9_223_372_036_854_775_807n;

export interface Root {
  readonly userId: string;
  /** What can be spent. */
  readonly balance: bigint;
  /** What holds have set aside. */
  readonly held: bigint;
  /** The number of the user's transactions. */
  readonly version: bigint;
  readonly updatedAt: Time;
}

/** What is left of one grant. */
export interface Lot {
  /** The transaction that made it. */
  readonly lotId: string;
  readonly userId: string;
  readonly granted: bigint;
  readonly remaining: bigint;
  /** Null: never. */
  readonly expiresAt: Time | null;
  /** The user's, when it was made: the smaller, the older. */
  readonly version: bigint;
  readonly createdAt: Time;
}

/** What a SUB or a HOLD took from a lot, and how much of it came back. */
export interface LotUse {
  readonly transactionId: string;
  readonly lotId: string;
  readonly amount: bigint;
  readonly returned: bigint;
}

export type HoldStatus = "HELD" | "CAPTURED" | "RELEASED" | "EXPIRED";

export interface Hold {
  /** The transaction that made it. */
  readonly holdId: string;
  readonly userId: string;
  readonly amount: bigint;
  readonly captured: bigint;
  readonly released: bigint;
  readonly status: HoldStatus;
  readonly endsAt: Time;
  readonly createdAt: Time;
  readonly updatedAt: Time;
}

export type Kind = "ADD" | "GRANT" | "SUB" | "EXPIRE" | "HOLD" | "RELEASE" | "CAPTURE" | "REFUND";

/** A transaction that a refund names. */
export interface Referred {
  readonly transactionId: string;
  readonly kind: Kind;
  readonly refersTo: string | null;
}

/** A user whose row is locked. */
export interface Account extends Omit<Root, "updatedAt"> {
  /** The database's clock, and never before the user's last transaction. */
  readonly at: Time;
  /** Those that have run out, those to spend in their order until it is enough, and those that something is returned to. */
  readonly lots: readonly Lot[];
  /** There are more lots to spend than may be taken at once. */
  readonly lotsLeftOut: boolean;
  readonly holds: readonly Hold[];
  readonly uses: readonly LotUse[];
  readonly referred: readonly Referred[];
}
