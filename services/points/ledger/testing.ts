/**
 * A model of the ledger that is simple enough to trust: every point is a coin in some place, and changes move coins one by
 * one. The ledger, which computes with lots, uses and sums, must give the same result.
 */
import type { Account, Hold, Lot, LotUse, ReferredTransaction, Root, Time } from "./account.ts";
import type { LedgerRows, PointTransaction } from "./changes.ts";

interface Coin {
  readonly lotId: string;
  readonly expiresAt: Time | null;
  /** The number of the user's lots before this one. */
  readonly age: number;
  place: "user" | "held" | "spent" | "expired";
  takenBy: string;
}

export class Coins {
  readonly #coins: Coin[] = [];
  readonly #holds = new Map<string, { endsAt: Time; takenBy: string }>();
  #lots = 0;

  grant(lotId: string, amount: number, expiresAt: Time | null): boolean {
    const age = this.#lots++;
    for (let n = 0; n < amount; n++) this.#coins.push({ lotId, expiresAt, age, place: "user", takenBy: "" });
    return true;
  }

  /** Expires holds and lots up to this time. */
  advanceTo(at: Time): void {
    for (const [holdId, { endsAt }] of this.#holds) if (endsAt <= at) this.endHold(holdId, 0);
    for (const coin of this.#coins)
      if (coin.place === "user" && coin.expiresAt !== null && coin.expiresAt <= at) coin.place = "expired";
  }

  take(takenBy: string, amount: number, place: "spent" | "held"): boolean {
    const available = this.#coins.filter((coin) => coin.place === "user").sort(soonestFirst);
    if (available.length < amount) return false;
    for (const coin of available.slice(0, amount)) Object.assign(coin, { place, takenBy });
    return true;
  }

  hold(holdId: string, amount: number, endsAt: Time): boolean {
    if (!this.take(holdId, amount, "held")) return false;
    this.#holds.set(holdId, { endsAt, takenBy: holdId });
    return true;
  }

  /** Spends `captured` coins and returns the others. Returns false if the hold has ended or has fewer. */
  endHold(holdId: string, captured: number | undefined): boolean {
    const coins = this.#coins.filter((coin) => coin.place === "held" && coin.takenBy === holdId).sort(soonestFirst);
    if (!this.#holds.has(holdId) || (captured ?? 0) > coins.length) return false;
    for (const [n, coin] of coins.entries()) coin.place = n < (captured ?? coins.length) ? "spent" : "user";
    return this.#holds.delete(holdId);
  }

  refund(takenBy: string, amount: number | undefined): boolean {
    const coins = this.#coins.filter((coin) => coin.place === "spent" && coin.takenBy === takenBy).sort(soonestFirst);
    const wanted = amount ?? coins.length;
    if (wanted === 0 || wanted > coins.length) return false;
    for (const coin of coins.slice(coins.length - wanted)) coin.place = "user";
    return true;
  }

  count(place: Coin["place"], lotId?: string): bigint {
    return BigInt(this.#coins.filter((c) => c.place === place && (lotId === undefined || c.lotId === lotId)).length);
  }
}

function soonestFirst(a: Coin, b: Coin): number {
  if (a.expiresAt === b.expiresAt) return a.age - b.age;
  return (a.expiresAt ?? "never") < (b.expiresAt ?? "never") ? -1 : 1;
}

/** The tables in memory: stores the rows of a batch and loads accounts from them. */
export class Tables {
  readonly transactions: PointTransaction[] = [];
  readonly lots = new Map<string, Lot>();
  readonly #uses = new Map<string, LotUse>();
  readonly holds = new Map<string, Hold>();
  readonly #roots = new Map<string, Root>();

  write(rows: LedgerRows): void {
    this.transactions.push(...rows.transactions);
    for (const lot of rows.lots) this.lots.set(lot.lotId, { ...lot });
    for (const use of rows.uses) this.#uses.set(`${use.transactionId} ${use.lotId}`, { ...use });
    for (const hold of rows.holds) this.holds.set(hold.holdId, hold);
    for (const root of rows.roots) this.#roots.set(root.userId, root);
  }

  account(userId: string, at: Time): Account {
    const { balance, held, version } = this.#roots.get(userId) ?? { balance: 0n, held: 0n, version: 0n };
    const isOwn = (row: { readonly userId: string }) => row.userId === userId;
    const referred: ReferredTransaction[] = this.transactions
      .filter(isOwn)
      .map(({ id, kind, refersTo }) => ({ transactionId: id, kind, refersTo }));
    const lots = [...this.lots.values()].filter(isOwn);
    const uses = [...this.#uses.values()].filter(({ lotId }) => this.lots.get(lotId)?.userId === userId);
    const holds = [...this.holds.values()].filter(isOwn);
    return { userId, balance, held, version, at, lots, uses, holds, referred, hasMoreLots: false };
  }
}
