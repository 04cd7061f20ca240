/**
 * The ledger's rules: the effects of changes on accounts. Pure functions, without clock or database.
 *
 * A change is applied completely or refused without effect. The balance always equals the sum of the user's transactions
 * and the sum of the user's lots; neither the balance nor the held points are ever negative.
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
import type { Account, Hold, ReferredTransaction, Time } from "./account.ts";
import type {
  Applied,
  Capture,
  Change,
  Grant,
  LedgerRows,
  PlaceHold,
  Refund,
  Release,
  Result,
  Spend,
} from "./changes.ts";
import { OpenAccount } from "./open-account.ts";

export interface AppliedChanges {
  /** One per change, in input order. */
  readonly results: readonly Result[];
  readonly rows: LedgerRows;
}

/**
 * Applies the changes in input order. `accounts` are the accounts of all users concerned; a user without one has never had
 * points. Every account first gets its expirations posted, even if no change touches it.
 */
export function applyChanges(accounts: readonly Account[], changes: readonly Change[]): AppliedChanges {
  const ledger = openLedger(accounts);
  const results = changes.map((change) => applyChange(ledger, change));
  return { results, rows: collectRows([...ledger.accounts.values()]) };
}

interface Ledger {
  readonly accounts: ReadonlyMap<string, OpenAccount>;
  readonly referred: ReadonlyMap<string, ReferredTransaction & { readonly userId: string }>;
}

function openLedger(accounts: readonly Account[]): Ledger {
  return {
    accounts: new Map(accounts.map((account) => [account.userId, new OpenAccount(account)])),
    referred: new Map(
      accounts.flatMap(({ userId, referred }) => referred.map((each) => [each.transactionId, { ...each, userId }])),
    ),
  };
}

function applyChange(ledger: Ledger, change: Change): Result {
  switch (change.kind) {
    case "ADD":
    case "GRANT":
      return grant(ledger, change);
    case "SUB":
      return spend(ledger, change);
    case "HOLD":
      return placeHold(ledger, change);
    case "CAPTURE":
      return capture(ledger, change);
    case "RELEASE":
      return release(ledger, change);
    case "REFUND":
      return refund(ledger, change);
  }
}

function grant({ accounts }: Ledger, change: Grant): Result {
  const account = accounts.get(change.userId);
  if (!account) throw new Error(`The account of ${change.userId} was not loaded for a grant.`);
  const { amount, expiresAt, kind } = change;
  if (kind === "ADD" && expiresAt !== null && expiresAt <= account.at)
    return lotEndInThePast("expires_at is in the past. No points were added.");
  if (!account.hasRoomFor(amount)) return overflow(account);
  const transaction = account.post({ ...change, moved: amount });
  account.addLot(transaction, expiresAt);
  return toApplied(account, transaction);
}

function spend(ledger: Ledger, change: Spend): Result {
  const account = accountToSpendFrom(ledger, change);
  if (account instanceof Problem) return account;
  const transaction = account.post({ ...change, moved: change.amount });
  account.take(change.amount, change.id);
  return toApplied(account, transaction);
}

function placeHold(ledger: Ledger, change: PlaceHold): Result {
  const account = accountToSpendFrom(ledger, change);
  if (account instanceof Problem) return account;
  const { id: holdId, userId, amount, ttlSeconds } = change;
  const { at } = account;
  const transaction = account.post({ ...change, moved: amount });
  account.take(amount, holdId);
  const parts = { captured: 0n, released: 0n, status: "HELD" } as const;
  const endsAt = addSeconds(at, ttlSeconds);
  const hold = account.saveHold({ holdId, userId, amount, ...parts, endsAt, createdAt: at, updatedAt: at });
  return toApplied(account, transaction, hold);
}

function capture(ledger: Ledger, change: Capture): Result {
  const found = findOpenHold(ledger, change.holdId);
  if (found instanceof Problem) return found;
  const { account, hold } = found;
  const { holdId } = hold;
  const captured = change.amount ?? hold.amount;
  if (captured > hold.amount) return captureTooLarge(`The hold has ${hold.amount} points.`);
  const released = hold.amount - captured;
  // Release the rest first, so that the capture's transaction shows the user's final balance.
  if (released > 0n) {
    account.post({ kind: "RELEASE", moved: released, idempotencyKey: `hold:${holdId}:rest`, refersTo: holdId });
    account.returnToLots(released, holdId);
  }
  const transaction = account.post({ ...change, moved: captured, refersTo: holdId });
  const ended = account.saveHold({ ...hold, captured, released, status: "CAPTURED", updatedAt: account.at });
  return toApplied(account, transaction, ended);
}

function release(ledger: Ledger, change: Release): Result {
  const found = findOpenHold(ledger, change.holdId);
  if (found instanceof Problem) return found;
  const { account, hold } = found;
  const { holdId, amount } = hold;
  const transaction = account.post({ ...change, moved: amount, refersTo: holdId });
  account.returnToLots(amount, holdId);
  const ended = account.saveHold({ ...hold, released: amount, status: "RELEASED", updatedAt: account.at });
  return toApplied(account, transaction, ended);
}

function refund({ accounts, referred }: Ledger, change: Refund): Result {
  const spent = referred.get(change.transactionId);
  const account = spent && accounts.get(spent.userId);
  if (!account) return transactionNotFound("No transaction has this ID.");
  const takenBy = takingTransaction(spent);
  if (takenBy === undefined)
    return notRefundable(`The transaction is of kind ${spent.kind}. Only SUB and CAPTURE can be refunded.`);
  const left = account.returnable(takenBy);
  const amount = change.amount ?? left;
  if (left === 0n) return refundTooLarge("The transaction is already refunded in full.");
  if (amount > left) return refundTooLarge(`${left} points of the transaction are not refunded yet.`);
  if (!account.hasRoomFor(amount)) return overflow(account);
  const transaction = account.post({ ...change, moved: amount, refersTo: change.transactionId });
  account.returnToLots(amount, takenBy);
  return toApplied(account, transaction);
}

/** The transaction whose lot uses record where the points came from. For a capture that is its hold. */
function takingTransaction({ transactionId, kind, refersTo }: ReferredTransaction): string | undefined {
  if (kind === "SUB") return transactionId;
  return kind === "CAPTURE" && refersTo !== null ? refersTo : undefined;
}

function accountToSpendFrom({ accounts }: Ledger, { userId, amount }: Spend | PlaceHold): OpenAccount | Problem {
  const account = accounts.get(userId);
  if (account && account.spendable() >= amount) return account;
  if (account?.hasMoreLots && account.balance >= amount)
    return tooManyLots("The points are spread over too many lots. Spend them in smaller amounts.");
  // The balance, not the sum of the loaded lots: lots are not loaded for a spend that exceeds the balance.
  return insufficientPoints(`The user has ${account?.balance ?? 0n} points.`);
}

function findOpenHold({ accounts }: Ledger, holdId: string): { account: OpenAccount; hold: Hold } | Problem {
  for (const account of accounts.values()) {
    const hold = account.hold(holdId);
    if (hold?.status === "HELD") return { account, hold };
    if (hold) return holdEnded(`The hold has been ${hold.status} since ${hold.updatedAt}.`);
  }
  return holdNotFound("No hold has this ID.");
}

const overflow = ({ balance, held }: OpenAccount) =>
  balanceOverflow(`The user already has ${balance + held} points; the maximum is 2^63 - 1.`);

function toApplied(account: OpenAccount, transaction: Applied["transaction"], hold?: Hold): Applied {
  const { balance, held, version } = account;
  return { transaction, balance, held, version, ...(hold && { hold }) };
}

const addSeconds = (at: Time, seconds: number): Time => new Date(Date.parse(at) + seconds * 1_000).toISOString();

function collectRows(accounts: readonly OpenAccount[]): LedgerRows {
  const rows = accounts.map((account) => account.rows());
  return {
    roots: rows.flatMap((each) => each.roots),
    transactions: rows.flatMap((each) => each.transactions),
    lots: rows.flatMap((each) => each.lots),
    uses: rows.flatMap((each) => each.uses),
    holds: rows.flatMap((each) => each.holds),
  };
}
