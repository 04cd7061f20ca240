/** The changes that can be made to points, their results, and the rows to be written. */
import type { IdempotencyKey } from "@todoke/kernel/idempotency";
import type { Problem } from "@todoke/kernel/problem";
import type { Hold, Kind, Lot, LotUse, Root, Time } from "./account.ts";

interface ChangeFields {
  /** UUID v7: the id of the transaction, and of the lot or hold that it creates. */
  readonly id: string;
  /** A change with a given key is posted once. Keys never expire. */
  readonly idempotencyKey: string;
  readonly reason?: string | undefined;
  readonly source?: string | undefined;
  readonly sourceId?: string | undefined;
}

/**
 * GRANT executes a reservation: it is posted even if its points have expired by now, and their expiry right after it. An
 * ADD of expired points is refused.
 */
export interface Grant extends ChangeFields {
  readonly kind: "ADD" | "GRANT";
  readonly userId: string;
  readonly amount: bigint;
  /** Null: never. */
  readonly expiresAt: Time | null;
  /** The earliest posting time. After a failover the new server's clock may be behind the one that found the grant due. */
  readonly notBefore?: Time | undefined;
}

export interface Spend extends ChangeFields {
  readonly kind: "SUB";
  readonly userId: string;
  readonly amount: bigint;
}

export interface PlaceHold extends ChangeFields {
  readonly kind: "HOLD";
  readonly userId: string;
  readonly amount: bigint;
  readonly ttlSeconds: number;
}

/** Spends held points; the rest of the hold is released. */
export interface Capture extends ChangeFields {
  readonly kind: "CAPTURE";
  readonly holdId: string;
  /** Default: the whole hold. */
  readonly amount?: bigint | undefined;
}

export interface Release extends ChangeFields {
  readonly kind: "RELEASE";
  readonly holdId: string;
}

/** Returns what a SUB or a CAPTURE spent to the lots that it came from. */
export interface Refund extends ChangeFields {
  readonly kind: "REFUND";
  readonly transactionId: string;
  /** Default: everything that is not refunded yet. */
  readonly amount?: bigint | undefined;
}

export type Change = Grant | Spend | PlaceHold | Capture | Release | Refund;

export const isGrant = (change: Change): change is Grant => change.kind === "ADD" || change.kind === "GRANT";

export interface ChangeRequest {
  readonly change: Change;
  /** The caller's key: the response is stored under it and replayed. */
  readonly key?: IdempotencyKey;
  /** Trace context for the event: `traceHeaders()`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A row of point_transactions. */
export interface PointTransaction {
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

export interface Applied {
  readonly transaction: PointTransaction;
  /** The hold that was placed or ended. */
  readonly hold?: Hold;
  /** The user's values after the change and everything that followed from it, such as the expiry of returned points. */
  readonly balance: bigint;
  readonly held: bigint;
  readonly version: bigint;
}

/** A Problem means that nothing was changed. */
export type Result = Applied | Problem;

/** The rows to be written, each once and in its final state. */
export interface LedgerRows {
  readonly roots: readonly Root[];
  /** In the order of each user's versions. */
  readonly transactions: readonly PointTransaction[];
  readonly lots: readonly Lot[];
  readonly uses: readonly LotUse[];
  readonly holds: readonly Hold[];
}
