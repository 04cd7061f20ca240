/**
 * One user's account while changes are applied to it.
 *
 * `post` keeps balance, held points and version in step with the transactions. Every point that enters or leaves the
 * balance enters or leaves a lot. The constructor posts expirations, so expired points are never spent.
 */
import { randomUUIDv7 } from "node:crypto";
import { type Account, type Hold, type Kind, type Lot, type LotUse, pointsMax, type Time } from "./account.ts";
import type { LedgerRows, PointTransaction } from "./changes.ts";

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** The sign with which a kind of transaction changes the balance and the held points. */
const effects: Record<Kind, { readonly balance: bigint; readonly held: bigint }> = {
  ADD: { balance: 1n, held: 0n },
  GRANT: { balance: 1n, held: 0n },
  SUB: { balance: -1n, held: 0n },
  EXPIRE: { balance: -1n, held: 0n },
  HOLD: { balance: -1n, held: 1n },
  RELEASE: { balance: 1n, held: -1n },
  CAPTURE: { balance: 0n, held: -1n },
  REFUND: { balance: 1n, held: 0n },
};

/** The parts of a transaction that the account cannot derive. */
export interface Posting {
  readonly kind: Kind;
  readonly moved: bigint;
  readonly idempotencyKey: string;
  readonly id?: string;
  readonly reason?: string | undefined;
  readonly source?: string | undefined;
  readonly sourceId?: string | undefined;
  readonly refersTo?: string;
  /** Default: now. */
  readonly effectiveAt?: Time;
}

export class OpenAccount {
  readonly userId: string;
  readonly at: Time;
  readonly hasMoreLots: boolean;
  balance: bigint;
  held: bigint;
  version: bigint;
  readonly #transactions: PointTransaction[] = [];
  readonly #lots: Mutable<Lot>[];
  readonly #uses: Mutable<LotUse>[];
  readonly #holds = new Map<string, Hold>();
  /** Rows that differ from what was loaded. */
  readonly #changedLots = new Set<Lot>();
  readonly #changedUses = new Set<LotUse>();
  readonly #changedHolds = new Set<string>();

  constructor(account: Account) {
    this.userId = account.userId;
    this.at = account.at;
    this.hasMoreLots = account.hasMoreLots;
    this.balance = account.balance;
    this.held = account.held;
    this.version = account.version;
    this.#lots = account.lots.map((lot) => ({ ...lot })).sort(compareLots);
    this.#uses = account.uses.map((use) => ({ ...use }));
    for (const hold of account.holds) this.#holds.set(hold.holdId, hold);
    this.#postExpirations();
  }

  hold(holdId: string): Hold | undefined {
    return this.#holds.get(holdId);
  }

  saveHold(hold: Hold): Hold {
    this.#holds.set(hold.holdId, hold);
    this.#changedHolds.add(hold.holdId);
    return hold;
  }

  hasRoomFor(amount: bigint): boolean {
    return this.balance + this.held + amount <= pointsMax;
  }

  post({ kind, moved, idempotencyKey, id = randomUUIDv7(), ...fields }: Posting): PointTransaction {
    this.balance += effects[kind].balance * moved;
    this.held += effects[kind].held * moved;
    this.version++;
    const transaction: PointTransaction = {
      id,
      idempotencyKey,
      userId: this.userId,
      pointAmount: effects[kind].balance * moved,
      kind,
      moved,
      balanceAfter: this.balance,
      heldAfter: this.held,
      version: this.version,
      reason: fields.reason ?? null,
      source: fields.source ?? null,
      sourceId: fields.sourceId ?? null,
      refersTo: fields.refersTo ?? null,
      effectiveAt: fields.effectiveAt ?? this.at,
      createdAt: this.at,
    };
    this.#transactions.push(transaction);
    return transaction;
  }

  /** Creates the lot of a posted grant. A lot that has already expired is emptied at once. */
  addLot({ id, moved, version, createdAt }: PointTransaction, expiresAt: Time | null): void {
    const { userId } = this;
    const lot = { lotId: id, userId, granted: moved, remaining: moved, expiresAt, version, createdAt };
    const index = this.#lots.findIndex((other) => compareLots(lot, other) < 0);
    this.#lots.splice(index === -1 ? this.#lots.length : index, 0, lot);
    this.#changedLots.add(lot);
    if (this.#isExpired(lot)) this.#expire(lot, this.at);
  }

  /** The points in the loaded lots that can be spent. */
  spendable(): bigint {
    return this.#lots.reduce((sum, lot) => (this.#isExpired(lot) ? sum : sum + lot.remaining), 0n);
  }

  /** Takes points in spending order. The caller has checked that there are enough. */
  take(amount: bigint, transactionId: string): void {
    let left = amount;
    for (const lot of this.#lots) {
      if (left === 0n) return;
      if (lot.remaining === 0n || this.#isExpired(lot)) continue;
      const taken = smaller(lot.remaining, left);
      left -= taken;
      lot.remaining -= taken;
      this.#changedLots.add(lot);
      const use = { transactionId, lotId: lot.lotId, amount: taken, returned: 0n };
      this.#uses.push(use);
      this.#changedUses.add(use);
    }
  }

  /** The points that a SUB or a HOLD took and that were not returned. */
  returnable(transactionId: string): bigint {
    return this.#usesOf(transactionId).reduce((sum, use) => sum + use.amount - use.returned, 0n);
  }

  /**
   * Returns points to the lots that they were taken from, in reverse spending order: the points that stay spent are those
   * that expire soonest. Points returned to an expired lot expire at once.
   */
  returnToLots(amount: bigint, transactionId: string, effectiveAt: Time = this.at): void {
    let left = amount;
    const lots = new Map(this.#lots.map((lot) => [lot.lotId, lot]));
    const taken = this.#usesOf(transactionId).map((use) => ({ use, lot: lots.get(use.lotId) as Mutable<Lot> }));
    for (const { use, lot } of taken.sort((a, b) => compareLots(b.lot, a.lot))) {
      const returned = smaller(use.amount - use.returned, left);
      if (returned === 0n) continue;
      left -= returned;
      use.returned += returned;
      lot.remaining += returned;
      this.#changedUses.add(use);
      this.#changedLots.add(lot);
      if (this.#isExpired(lot)) this.#expire(lot, later(effectiveAt, lot.expiresAt));
    }
  }

  /** The rows that differ from what was loaded. */
  rows(): LedgerRows {
    const { userId, balance, held, version, at: updatedAt } = this;
    return {
      roots: this.#transactions.length === 0 ? [] : [{ userId, balance, held, version, updatedAt }],
      transactions: this.#transactions,
      lots: [...this.#changedLots],
      uses: [...this.#changedUses],
      holds: [...this.#changedHolds].map((holdId) => this.#holds.get(holdId) as Hold),
    };
  }

  /** Lots first: points that a hold returns to an expired lot expire with the hold, not with the rest of the lot. */
  #postExpirations(): void {
    for (const lot of this.#lots) {
      if (lot.expiresAt !== null && this.#isExpired(lot) && lot.remaining > 0n) this.#expire(lot, lot.expiresAt);
    }
    for (const hold of this.#holds.values()) {
      if (hold.status === "HELD" && hold.endsAt <= this.at) this.#expireHold(hold);
    }
  }

  #expireHold(hold: Hold): void {
    const { holdId, amount, endsAt } = hold;
    const idempotencyKey = `hold:${holdId}:end`;
    this.post({ kind: "RELEASE", moved: amount, idempotencyKey, refersTo: holdId, effectiveAt: endsAt });
    this.returnToLots(amount, holdId, endsAt);
    this.saveHold({ ...hold, released: amount, status: "EXPIRED", updatedAt: this.at });
  }

  #expire(lot: Mutable<Lot>, effectiveAt: Time): void {
    // A lot can expire again after points were returned to it. The version makes the key unique.
    const idempotencyKey = `expire:${lot.lotId}:${this.version + 1n}`;
    this.post({ kind: "EXPIRE", moved: lot.remaining, idempotencyKey, refersTo: lot.lotId, effectiveAt });
    lot.remaining = 0n;
    this.#changedLots.add(lot);
  }

  #usesOf(transactionId: string): Mutable<LotUse>[] {
    return this.#uses.filter((use) => use.transactionId === transactionId);
  }

  #isExpired({ expiresAt }: Lot): boolean {
    return expiresAt !== null && expiresAt <= this.at;
  }
}

/** Spending order: the lot that expires soonest, then the oldest. */
function compareLots(a: Lot, b: Lot): number {
  if (a.expiresAt !== b.expiresAt) {
    if (a.expiresAt === null) return 1;
    if (b.expiresAt === null) return -1;
    return a.expiresAt < b.expiresAt ? -1 : 1;
  }
  return a.version < b.version ? -1 : Number(a.version > b.version);
}

const later = (a: Time, b: Time | null) => (b !== null && b > a ? b : a);
const smaller = (a: bigint, b: bigint) => (a < b ? a : b);
