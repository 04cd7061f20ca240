/** What can be done to points, what became of it, and the rows that it leaves to be written. */
import type { Problem } from "@todoke/kernel/problem";
import type { Hold, Kind, Lot, LotUse, Root, Time } from "./account.ts";

interface Asked {
  /** UUID v7: the transaction's id, and that of the lot or hold which it makes. */
  readonly id: string;
  /** What happens under one key happens once, for ever. */
  readonly idempotencyKey: string;
  readonly reason?: string | undefined;
  readonly source?: string | undefined;
  readonly sourceId?: string | undefined;
}

/**
 * GRANT is what was promised before: it is booked though it has run out meanwhile, and its end right after it. An ADD
 * that has run out already is refused.
 */
export interface Grant extends Asked {
  readonly kind: "ADD" | "GRANT";
  readonly userId: string;
  readonly amount: bigint;
  /** Null: never. */
  readonly expiresAt: Time | null;
  /** It is booked at this time or later, whatever the clock says: the clock of a server that failed since may have been ahead. */
  readonly notBefore?: Time | undefined;
}

export interface Spend extends Asked {
  readonly kind: "SUB";
  readonly userId: string;
  readonly amount: bigint;
}

export interface SetAside extends Asked {
  readonly kind: "HOLD";
  readonly userId: string;
  readonly amount: bigint;
  readonly ttlSeconds: number;
}

/** Spends what a hold has set aside; what is not captured is released. */
export interface Capture extends Asked {
  readonly kind: "CAPTURE";
  readonly holdId: string;
  /** All of it, if not given. */
  readonly amount?: bigint | undefined;
}

export interface Release extends Asked {
  readonly kind: "RELEASE";
  readonly holdId: string;
}

/** Gives back what a SUB or a CAPTURE spent, into the lots that it came from. */
export interface Refund extends Asked {
  readonly kind: "REFUND";
  readonly transactionId: string;
  /** All that was not given back yet, if not given. */
  readonly amount?: bigint | undefined;
}

export type Change = Grant | Spend | SetAside | Capture | Release | Refund;

/** A row of point_transactions. */
export interface Transaction {
  readonly id: string;
  readonly idempotencyKey: string;
  readonly userId: string;
  readonly pointAmount: bigint;
  readonly kind: Kind;
  readonly moved: bigint;
  readonly balanceAfter: bigint;
  readonly heldAfter: bigint;
  readonly version: bigint;
  readonly reason: string | null;
  readonly source: string | null;
  readonly sourceId: string | null;
  readonly refersTo: string | null;
  readonly effectiveAt: Time;
  readonly createdAt: Time;
}

/** What was done. */
export interface Applied {
  readonly transaction: Transaction;
  /** The hold, where it is about one, as it is now. */
  readonly hold?: Hold;
  /** The user's, after all that the change has brought about: what came back too late runs out at once. */
  readonly balance: bigint;
  readonly held: bigint;
  readonly version: bigint;
}

/** A refusal has changed nothing. */
export type Result = Applied | Problem;

/** Everything that is to be written, each row once and as it is in the end. */
export interface LedgerRows {
  readonly roots: readonly Root[];
  /** In the order of each user's versions. */
  readonly transactions: readonly Transaction[];
  readonly lots: readonly Lot[];
  readonly uses: readonly LotUse[];
  readonly holds: readonly Hold[];
}
