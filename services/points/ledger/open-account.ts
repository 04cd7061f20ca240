/**
 * One user's account while changes are made to it.
 *
 * Every movement of points goes through `post`, which keeps balance, held points and version in step with the transactions;
 * every point that enters or leaves the balance enters or leaves a lot. Opening it books what has run out, so nothing that
 * has is ever spent.
 */
import { randomUUIDv7 } from "node:crypto";
import { type Account, type Hold, type Kind, type Lot, type LotUse, pointsMax, type Time } from "./account.ts";
import type { LedgerRows, Transaction } from "./changes.ts";

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** What a kind of transaction does to the balance and to the held points, in units of what it moves. */
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

/** A transaction, as far as the account cannot tell it by itself. */
export interface Posting {
  readonly kind: Kind;
  readonly moved: bigint;
  readonly idempotencyKey: string;
  readonly id?: string;
  readonly reason?: string | undefined;
  readonly source?: string | undefined;
  readonly sourceId?: string | undefined;
  readonly refersTo?: string;
  /** Now, if not given. */
  readonly effectiveAt?: Time;
}

export class OpenAccount {
  readonly userId: string;
  readonly at: Time;
  readonly lotsLeftOut: boolean;
  balance: bigint;
  held: bigint;
  version: bigint;
  readonly #transactions: Transaction[] = [];
  readonly #lots: Mutable<Lot>[];
  readonly #uses: Mutable<LotUse>[];
  readonly #holds = new Map<string, Hold>();
  /** Rows that differ from those that were read. */
  readonly #changedLots = new Set<Lot>();
  readonly #changedUses = new Set<LotUse>();
  readonly #changedHolds = new Set<string>();

  constructor(account: Account) {
    this.userId = account.userId;
    this.at = account.at;
    this.lotsLeftOut = account.lotsLeftOut;
    this.balance = account.balance;
    this.held = account.held;
    this.version = account.version;
    this.#lots = account.lots.map((lot) => ({ ...lot })).sort(inSpendingOrder);
    this.#uses = account.uses.map((use) => ({ ...use }));
    for (const hold of account.holds) this.#holds.set(hold.holdId, hold);
    this.#bookWhatHasRunOut();
  }

  hold(holdId: string): Hold | undefined {
    return this.#holds.get(holdId);
  }

  keepHold(hold: Hold): Hold {
    this.#holds.set(hold.holdId, hold);
    this.#changedHolds.add(hold.holdId);
    return hold;
  }

  hasRoomFor(amount: bigint): boolean {
    return this.balance + this.held + amount <= pointsMax;
  }

  post({ kind, moved, idempotencyKey, id = randomUUIDv7(), ...about }: Posting): Transaction {
    this.balance += effects[kind].balance * moved;
    this.held += effects[kind].held * moved;
    this.version++;
    const transaction: Transaction = {
      id,
      idempotencyKey,
      userId: this.userId,
      pointAmount: effects[kind].balance * moved,
      kind,
      moved,
      balanceAfter: this.balance,
      heldAfter: this.held,
      version: this.version,
      reason: about.reason ?? null,
      source: about.source ?? null,
      sourceId: about.sourceId ?? null,
      refersTo: about.refersTo ?? null,
      effectiveAt: about.effectiveAt ?? this.at,
      createdAt: this.at,
    };
    this.#transactions.push(transaction);
    return transaction;
  }

  /** The lot of a grant that has just been posted; one that has run out already ends right after it. */
  addLot({ id, moved, version, createdAt }: Transaction, expiresAt: Time | null): void {
    const { userId } = this;
    const lot = { lotId: id, userId, granted: moved, remaining: moved, expiresAt, version, createdAt };
    const place = this.#lots.findIndex((other) => inSpendingOrder(lot, other) < 0);
    this.#lots.splice(place === -1 ? this.#lots.length : place, 0, lot);
    this.#changedLots.add(lot);
    if (this.#hasEnded(lot)) this.#expire(lot, this.at);
  }

  /** What the lots at hand have to spend. */
  spendable(): bigint {
    return this.#lots.reduce((sum, lot) => (this.#hasEnded(lot) ? sum : sum + lot.remaining), 0n);
  }

  /** Takes points from the lots that end soonest, then from the oldest; the caller has asked whether there are enough. */
  take(amount: bigint, transactionId: string): void {
    let left = amount;
    for (const lot of this.#lots) {
      if (left === 0n) return;
      if (lot.remaining === 0n || this.#hasEnded(lot)) continue;
      const taken = smaller(lot.remaining, left);
      left -= taken;
      lot.remaining -= taken;
      this.#changedLots.add(lot);
      const use = { transactionId, lotId: lot.lotId, amount: taken, returned: 0n };
      this.#uses.push(use);
      this.#changedUses.add(use);
    }
  }

  /** What a SUB, or a hold, took and did not give back yet. */
  returnable(transactionId: string): bigint {
    return this.#usesOf(transactionId).reduce((sum, use) => sum + use.amount - use.returned, 0n);
  }

  /**
   * Gives points back into the lots that they were taken from, the last taken first: what is spent for good are those that
   * end soonest. A lot that has ended meanwhile gets them all the same, and their end is booked at once.
   */
  giveBack(amount: bigint, transactionId: string, effectiveAt: Time = this.at): void {
    let left = amount;
    const lots = new Map(this.#lots.map((lot) => [lot.lotId, lot]));
    const taken = this.#usesOf(transactionId).map((use) => ({ use, lot: lots.get(use.lotId) as Mutable<Lot> }));
    for (const { use, lot } of taken.sort((a, b) => inSpendingOrder(b.lot, a.lot))) {
      const back = smaller(use.amount - use.returned, left);
      if (back === 0n) continue;
      left -= back;
      use.returned += back;
      lot.remaining += back;
      this.#changedUses.add(use);
      this.#changedLots.add(lot);
      if (this.#hasEnded(lot)) this.#expire(lot, later(effectiveAt, lot.expiresAt));
    }
  }

  /** Everything that differs from what was read. */
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

  /** Lots first: what a hold gives back to a lot that has ended ends when the hold did, and not with the lot's own rest. */
  #bookWhatHasRunOut(): void {
    for (const lot of this.#lots) {
      if (lot.expiresAt !== null && this.#hasEnded(lot) && lot.remaining > 0n) this.#expire(lot, lot.expiresAt);
    }
    for (const hold of this.#holds.values()) {
      if (hold.status === "HELD" && hold.endsAt <= this.at) this.#endHold(hold);
    }
  }

  #endHold(hold: Hold): void {
    const { holdId, amount, endsAt } = hold;
    const idempotencyKey = `hold:${holdId}:end`;
    this.post({ kind: "RELEASE", moved: amount, idempotencyKey, refersTo: holdId, effectiveAt: endsAt });
    this.giveBack(amount, holdId, endsAt);
    this.keepHold({ ...hold, released: amount, status: "EXPIRED", updatedAt: this.at });
  }

  #expire(lot: Mutable<Lot>, effectiveAt: Time): void {
    // A lot can run out again after something was given back to it: the version tells the two apart.
    const idempotencyKey = `expire:${lot.lotId}:${this.version + 1n}`;
    this.post({ kind: "EXPIRE", moved: lot.remaining, idempotencyKey, refersTo: lot.lotId, effectiveAt });
    lot.remaining = 0n;
    this.#changedLots.add(lot);
  }

  #usesOf(transactionId: string): Mutable<LotUse>[] {
    return this.#uses.filter((use) => use.transactionId === transactionId);
  }

  #hasEnded({ expiresAt }: Lot): boolean {
    return expiresAt !== null && expiresAt <= this.at;
  }
}

/** The lot that ends soonest, then the oldest. */
function inSpendingOrder(a: Lot, b: Lot): number {
  if (a.expiresAt !== b.expiresAt) {
    if (a.expiresAt === null) return 1;
    if (b.expiresAt === null) return -1;
    return a.expiresAt < b.expiresAt ? -1 : 1;
  }
  return a.version < b.version ? -1 : Number(a.version > b.version);
}

const later = (a: Time, b: Time | null) => (b !== null && b > a ? b : a);

const smaller = (a: bigint, b: bigint) => (a < b ? a : b);
