/**
 * The ledger's rules, and nothing else: what changes do to accounts. No clock, no database, no order but the one given.
 *
 * Each change is carried out whole or refused with nothing changed. Whatever is done, the balance is the sum of its
 * transactions and of its lots, and neither it nor what is held is ever below zero.
 */
import { Problem } from "@todoke/kernel/problem";
import {
  balanceOverflow,
  captureTooLarge,
  holdEnded,
  holdNotFound,
  insufficientPoints,
  lotEndInThePast,
  notRefundable,
  refundTooLarge,
  tooManyLots,
  transactionNotFound,
} from "../problems.ts";
import type { Account, Hold, Referred, Time } from "./account.ts";
import type {
  Applied,
  Capture,
  Change,
  Grant,
  LedgerRows,
  Refund,
  Release,
  Result,
  SetAside,
  Spend,
} from "./changes.ts";
import { OpenAccount } from "./open-account.ts";

export interface ChangesApplied {
  /** One for each change, in its place. */
  readonly results: readonly Result[];
  readonly rows: LedgerRows;
}

/**
 * Carries out the changes in their order. The accounts are those of all users concerned, as they are now; a user without one
 * has never had points. In every account what has run out is booked first, whether or not a change touches it.
 */
export function applyChanges(accounts: readonly Account[], changes: readonly Change[]): ChangesApplied {
  const books = openBooks(accounts);
  const results = changes.map((change) => applyChange(books, change));
  return { results, rows: rowsOf([...books.accounts.values()]) };
}

/** The accounts, by what a change may name. */
interface Books {
  readonly accounts: ReadonlyMap<string, OpenAccount>;
  readonly referred: ReadonlyMap<string, Referred & { readonly userId: string }>;
}

function openBooks(accounts: readonly Account[]): Books {
  return {
    accounts: new Map(accounts.map((account) => [account.userId, new OpenAccount(account)])),
    referred: new Map(
      accounts.flatMap(({ userId, referred }) => referred.map((each) => [each.transactionId, { ...each, userId }])),
    ),
  };
}

function applyChange(books: Books, change: Change): Result {
  switch (change.kind) {
    case "ADD":
    case "GRANT":
      return grant(books, change);
    case "SUB":
      return spend(books, change);
    case "HOLD":
      return setAside(books, change);
    case "CAPTURE":
      return capture(books, change);
    case "RELEASE":
      return release(books, change);
    case "REFUND":
      return refund(books, change);
  }
}

function grant({ accounts }: Books, change: Grant): Result {
  const account = accounts.get(change.userId);
  if (!account) throw new Error(`the ledger was asked to grant points to ${change.userId} without the user's account`);
  const { amount, expiresAt, kind } = change;
  if (kind === "ADD" && expiresAt !== null && expiresAt <= account.at)
    return lotEndInThePast("expires_at has passed already; nothing was added");
  if (!account.hasRoomFor(amount)) return overflow(account);
  const transaction = account.post({ ...change, moved: amount });
  account.addLot(transaction, expiresAt);
  return done(account, transaction);
}

function spend({ accounts }: Books, change: Spend): Result {
  const account = accounts.get(change.userId);
  const refusal = refusalToTake(account, change.amount);
  if (!account || refusal) return refusal ?? insufficientPoints("the user has no points");
  const transaction = account.post({ ...change, moved: change.amount });
  account.take(change.amount, change.id);
  return done(account, transaction);
}

function setAside({ accounts }: Books, change: SetAside): Result {
  const account = accounts.get(change.userId);
  const refusal = refusalToTake(account, change.amount);
  if (!account || refusal) return refusal ?? insufficientPoints("the user has no points");
  const { id: holdId, userId, amount, ttlSeconds } = change;
  const { at } = account;
  const transaction = account.post({ ...change, moved: amount });
  account.take(amount, holdId);
  const parts = { captured: 0n, released: 0n, status: "HELD" } as const;
  const endsAt = secondsAfter(at, ttlSeconds);
  const hold = account.keepHold({ holdId, userId, amount, ...parts, endsAt, createdAt: at, updatedAt: at });
  return done(account, transaction, hold);
}

function capture(books: Books, change: Capture): Result {
  const found = openHold(books, change.holdId);
  if (found instanceof Problem) return found;
  const { account, hold } = found;
  const { holdId } = hold;
  const captured = change.amount ?? hold.amount;
  if (captured > hold.amount) return captureTooLarge(`the hold has ${hold.amount} points`);
  const released = hold.amount - captured;
  // The rest goes back first: so the balance that is told with the capture is the one that the user has then.
  if (released > 0n) {
    account.post({ kind: "RELEASE", moved: released, idempotencyKey: `hold:${holdId}:rest`, refersTo: holdId });
    account.giveBack(released, holdId);
  }
  const transaction = account.post({ ...change, moved: captured, refersTo: holdId });
  return done(
    account,
    transaction,
    account.keepHold({ ...hold, captured, released, status: "CAPTURED", updatedAt: account.at }),
  );
}

function release(books: Books, change: Release): Result {
  const found = openHold(books, change.holdId);
  if (found instanceof Problem) return found;
  const { account, hold } = found;
  const { holdId, amount } = hold;
  const transaction = account.post({ ...change, moved: amount, refersTo: holdId });
  account.giveBack(amount, holdId);
  return done(
    account,
    transaction,
    account.keepHold({ ...hold, released: amount, status: "RELEASED", updatedAt: account.at }),
  );
}

function refund({ accounts, referred }: Books, change: Refund): Result {
  const spent = referred.get(change.transactionId);
  const account = spent && accounts.get(spent.userId);
  if (!account) return transactionNotFound("no transaction has this id");
  const takenBy = takenByOf(spent);
  if (takenBy === undefined) return notRefundable(`it is ${spent.kind}; only SUB and CAPTURE can be refunded`);
  const left = account.returnable(takenBy);
  const amount = change.amount ?? left;
  if (left === 0n) return refundTooLarge("all of it was given back already");
  if (amount > left) return refundTooLarge(`${left} points of it were not given back yet`);
  if (!account.hasRoomFor(amount)) return overflow(account);
  const transaction = account.post({ ...change, moved: amount, refersTo: change.transactionId });
  account.giveBack(amount, takenBy);
  return done(account, transaction);
}

/** Whose uses of lots say where the points came from: a captured hold took them before. */
function takenByOf({ transactionId, kind, refersTo }: Referred): string | undefined {
  if (kind === "SUB") return transactionId;
  return kind === "CAPTURE" && refersTo !== null ? refersTo : undefined;
}

function refusalToTake(account: OpenAccount | undefined, amount: bigint): Problem | undefined {
  const spendable = account?.spendable() ?? 0n;
  if (spendable >= amount) return undefined;
  if (account?.lotsLeftOut && account.balance >= amount)
    return tooManyLots("the points are spread over too many grants; take them in smaller parts");
  // Not what the lots at hand add up to: those of a spend that is too large for the balance are not even read.
  return insufficientPoints(`the user has ${account?.balance ?? 0n} points`);
}

function openHold({ accounts }: Books, holdId: string): { account: OpenAccount; hold: Hold } | Problem {
  for (const account of accounts.values()) {
    const hold = account.hold(holdId);
    if (hold?.status === "HELD") return { account, hold };
    if (hold) return holdEnded(`the hold is ${hold.status} since ${hold.updatedAt}`);
  }
  return holdNotFound("no hold has this id");
}

const overflow = ({ balance, held }: OpenAccount) =>
  balanceOverflow(`the user has ${balance + held} points already, and 2^63 - 1 are the most that can be counted`);

function done(account: OpenAccount, transaction: Applied["transaction"], hold?: Hold): Applied {
  const { balance, held, version } = account;
  return { transaction, balance, held, version, ...(hold && { hold }) };
}

const secondsAfter = (at: Time, seconds: number): Time => new Date(Date.parse(at) + seconds * 1_000).toISOString();

function rowsOf(accounts: readonly OpenAccount[]): LedgerRows {
  const rows = accounts.map((account) => account.rows());
  return {
    roots: rows.flatMap((each) => each.roots),
    transactions: rows.flatMap((each) => each.transactions),
    lots: rows.flatMap((each) => each.lots),
    uses: rows.flatMap((each) => each.uses),
    holds: rows.flatMap((each) => each.holds),
  };
}
