/** A user's account, as far as the changes at hand need it. Amounts are bigint, so they are exact. */

/** RFC 3339, UTC, to the millisecond: "2026-01-15T01:00:00.000Z". All have the same length, so they compare as text. */
export type Time = string;

/** 2^63 - 1: the largest amount, and the most points a user can have, including held ones. */
export const pointsMax = 9_223_372_036_854_775_807n;

export interface Root {
  readonly userId: string;
  /** Points that can be spent. */
  readonly balance: bigint;
  /** Points blocked by holds. */
  readonly held: bigint;
  /** The number of the user's transactions. */
  readonly version: bigint;
  readonly updatedAt: Time;
}

/** The rest of one grant. */
export interface Lot {
  /** The id of the transaction that created it. */
  readonly lotId: string;
  readonly userId: string;
  readonly granted: bigint;
  readonly remaining: bigint;
  /** Null: never. */
  readonly expiresAt: Time | null;
  /** The user's version when the lot was created: a smaller one is older. */
  readonly version: bigint;
  readonly createdAt: Time;
}

/** The points that a SUB or a HOLD took from a lot, and how many of them were returned. */
export interface LotUse {
  readonly transactionId: string;
  readonly lotId: string;
  readonly amount: bigint;
  readonly returned: bigint;
}

export type HoldStatus = "HELD" | "CAPTURED" | "RELEASED" | "EXPIRED";

export interface Hold {
  /** The id of the transaction that placed it. */
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
export interface ReferredTransaction {
  readonly transactionId: string;
  readonly kind: Kind;
  readonly refersTo: string | null;
}

/** A user whose row is locked. */
export interface Account extends Omit<Root, "updatedAt"> {
  /** The database's clock, and never before the user's last transaction. */
  readonly at: Time;
  /** Expired lots, enough lots to spend from in spending order, and lots that something is returned to. */
  readonly lots: readonly Lot[];
  /** There are more lots to spend from than one change may use. */
  readonly hasMoreLots: boolean;
  readonly holds: readonly Hold[];
  readonly uses: readonly LotUse[];
  readonly referred: readonly ReferredTransaction[];
}
