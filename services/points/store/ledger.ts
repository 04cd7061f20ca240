/**
 * The way into the ledger: changes of points, carried out in the caller's transaction.
 *
 * Everybody who changes points comes through here, commands and workers alike. A batch takes the same few statements however
 * large it is: the users are locked in the order of their names, so batches cannot deadlock; what is known under its key is
 * looked up behind these locks; the rules (ledger/) decide; and one statement writes all of it.
 */
import type { Tx } from "@todoke/kernel/db";
import type { Answer, IdempotencyKey, KeyedResponse } from "@todoke/kernel/idempotency";
import { Problem } from "@todoke/kernel/problem";
import { answerOf } from "../ledger/answer.ts";
import { applyChanges } from "../ledger/apply-changes.ts";
import type { Applied, Change, Result, Transaction } from "../ledger/changes.ts";
import { type Known, selectKnown } from "./known-keys.ts";
import { loadAccounts } from "./load-accounts.ts";
import { lockRoots, usersConcerned } from "./lock-roots.ts";
import { writeLedger } from "./write-ledger.ts";

/** A change, and what is to be kept with it. */
export interface Entry {
  readonly change: Change;
  /** The caller's key: with it the answer is kept, and given again to whoever asks again. */
  readonly key?: IdempotencyKey;
  /** Trace context for the event: `traceHeaders()`. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type Booked =
  /** `answer` is there if the entry had a key. */
  | { readonly result: "booked"; readonly applied: Applied; readonly answer?: Answer }
  /** It was carried out before, and nothing was done now; with the answer of then, if the entry has a key. */
  | { readonly result: "known"; readonly transactionId: string; readonly answer?: Answer }
  /** The key was used for something else, or so long ago that its answer is forgotten. */
  | { readonly result: "conflict"; readonly transactionId: string; readonly detail: string }
  /** Nothing was changed, and nothing is kept under the key. */
  | { readonly result: "refused"; readonly problem: Problem };

/**
 * Carries out the changes in their order and says what became of each, in its place. Of two with one idempotency key the
 * second finds the first. Keep it to some hundreds at once: their users wait meanwhile.
 */
export async function book(tx: Tx, entries: readonly Entry[]): Promise<readonly Booked[]> {
  const wanted = changesOf(entries);
  const roots = await lockRoots(tx, await usersConcerned(tx, wanted), wanted);
  const known = await selectKnown(tx, entries);
  const fresh = firstOfEachKey(entries.filter((_, place) => known[place] === undefined));
  const changes = changesOf([...fresh.values()]);
  const { results, rows } = applyChanges(await loadAccounts(tx, roots, changes), changes);
  const booked = new Map([...fresh.values()].map((entry, place) => [entry, bookedOf(entry, results[place] as Result)]));
  await writeLedger(tx, { rows, answers: answersOf(booked), headersOf: headersIn(fresh) });
  return entries.map((entry, place) => {
    const before = known[place];
    if (before) return bookedBefore(entry, before);
    return booked.get(entry) ?? foundInBatch(booked.get(fresh.get(entry.change.idempotencyKey) as Entry) as Booked);
  });
}

/** Books what has run out of these users, as every change of them would. Returns how many transactions that took. */
export async function bookWhatHasRunOut(tx: Tx, userIds: readonly string[]): Promise<number> {
  const roots = await lockRoots(tx, [...new Set(userIds)].sort());
  const { rows } = applyChanges(await loadAccounts(tx, roots, []), []);
  await writeLedger(tx, { rows, answers: [], headersOf: () => ({}) });
  return rows.transactions.length;
}

const changesOf = (entries: readonly Entry[]): Change[] => entries.map((entry) => entry.change);

function firstOfEachKey(entries: readonly Entry[]): Map<string, Entry> {
  const firsts = new Map<string, Entry>();
  for (const entry of entries) {
    const { idempotencyKey } = entry.change;
    if (!firsts.has(idempotencyKey)) firsts.set(idempotencyKey, entry);
  }
  return firsts;
}

function bookedOf({ change, key }: Entry, result: Result): Booked {
  if (result instanceof Problem) return { result: "refused", problem: result };
  if (!key) return { result: "booked", applied: result };
  return { result: "booked", applied: result, answer: { ...answerOf(change, result), replayed: false } };
}

function answersOf(booked: ReadonlyMap<Entry, Booked>): KeyedResponse[] {
  return [...booked].flatMap(([{ key }, each]) =>
    key && each.result === "booked" && each.answer ? [{ key, ...each.answer }] : [],
  );
}

/** What a change brought about besides (the end of what came back too late) is told without a trace. */
function headersIn(fresh: ReadonlyMap<string, Entry>) {
  return ({ idempotencyKey }: Transaction) => fresh.get(idempotencyKey)?.headers ?? {};
}

function bookedBefore({ key }: Entry, { transactionId, answer }: Known): Booked {
  if (!key) return { result: "known", transactionId };
  if (!answer) return { result: "conflict", transactionId, detail: forgotten(transactionId) };
  const { requestHash, ...kept } = answer;
  if (requestHash.equals(key.requestHash)) return { result: "known", transactionId, answer: kept };
  return { result: "conflict", transactionId, detail: otherBody };
}

const otherBody = "this Idempotency-Key was first sent with another body; use a new key for a new command";
const forgotten = (transactionId: string) =>
  `this Idempotency-Key made transaction ${transactionId} more than 24 hours ago; use a new key for a new command`;

function foundInBatch(first: Booked): Booked {
  return first.result === "booked" ? { result: "known", transactionId: first.applied.transaction.id } : first;
}
