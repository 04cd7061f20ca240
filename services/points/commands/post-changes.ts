/**
 * Posts changes of points in the caller's transaction. Every change of the ledger goes through here.
 *
 * A batch of any size takes the same few statements: lock the users, look up existing keys under these locks, load the
 * accounts, apply the rules (ledger/), write everything.
 */
import type { Tx } from "@todoke/kernel/db";
import { type CommandResponse, idempotencyConflict, type KeyedResponse, keyConflict } from "@todoke/kernel/idempotency";
import type { NewEvent } from "@todoke/kernel/outbox";
import { Problem } from "@todoke/kernel/problem";
import { transactionEvent } from "../events/transaction-events.ts";
import { applyChanges } from "../ledger/apply-changes.ts";
import type { Applied, ChangeRequest, LedgerRows, Result } from "../ledger/changes.ts";
import { toResponse } from "../ledger/response.ts";
import { type ExistingTransaction, selectExistingTransactions } from "../store/existing-transactions.ts";
import { loadAccounts } from "../store/load-accounts.ts";
import { lockRoots, selectAffectedUsers } from "../store/lock-roots.ts";
import { writeLedger } from "../store/write-ledger.ts";

/** `response` is present if the request has a key. */
export type PostResult =
  | { readonly result: "posted"; readonly applied: Applied; readonly response?: CommandResponse }
  /** Posted before, with the stored response; nothing was done now. */
  | { readonly result: "replayed"; readonly transactionId: string; readonly response?: CommandResponse }
  /** The key was used for another request, or its response is deleted by retention. */
  | { readonly result: "conflict"; readonly transactionId: string; readonly problem: Problem }
  /** Nothing was changed or stored. */
  | { readonly result: "refused"; readonly problem: Problem };

/**
 * Posts the changes in input order and returns their results in the same order. If two have the same idempotency key, the
 * second finds the first. Keep a batch to some hundreds: its users stay locked until the commit.
 */
export async function postChanges(tx: Tx, requests: readonly ChangeRequest[]): Promise<readonly PostResult[]> {
  const wanted = requests.map(({ change }) => change);
  const roots = await lockRoots(tx, await selectAffectedUsers(tx, wanted), wanted);
  const existing = await selectExistingTransactions(tx, requests);
  const newRequests = firstOfEachKey(requests.filter((_, index) => existing[index] === undefined));
  const changes = [...newRequests.values()].map(({ change }) => change);
  const { results, rows } = applyChanges(await loadAccounts(tx, roots, changes), changes);
  const posted = new Map(
    [...newRequests.values()].map((request, index) => [request, toPostResult(request, results[index] as Result)]),
  );
  await writeLedger(tx, { rows, events: toEvents(rows, newRequests), responses: toKeyedResponses(posted) });
  return requests.map((request, index) => {
    const before = existing[index];
    if (before) return toReplay(request, before);
    return (
      posted.get(request) ?? toDuplicate(posted.get(newRequests.get(request.change.idempotencyKey) as ChangeRequest))
    );
  });
}

/** Posts the expired lots and holds of these users, as any change of theirs would. Returns the number of transactions. */
export async function postExpirations(tx: Tx, userIds: readonly string[]): Promise<number> {
  const { rows } = applyChanges(await loadAccounts(tx, await lockRoots(tx, userIds), []), []);
  await writeLedger(tx, { rows, events: toEvents(rows, new Map()), responses: [] });
  return rows.transactions.length;
}

function firstOfEachKey(requests: readonly ChangeRequest[]): Map<string, ChangeRequest> {
  const firsts = new Map<string, ChangeRequest>();
  for (const request of requests) {
    const { idempotencyKey } = request.change;
    if (!firsts.has(idempotencyKey)) firsts.set(idempotencyKey, request);
  }
  return firsts;
}

function toPostResult({ change, key }: ChangeRequest, result: Result): PostResult {
  if (result instanceof Problem) return { result: "refused", problem: result };
  if (!key) return { result: "posted", applied: result };
  return { result: "posted", applied: result, response: { ...toResponse(change, result), replayed: false } };
}

function toKeyedResponses(posted: ReadonlyMap<ChangeRequest, PostResult>): KeyedResponse[] {
  return [...posted].flatMap(([{ key }, each]) =>
    key && each.result === "posted" && each.response ? [{ key, ...each.response }] : [],
  );
}

/** Transactions that follow from a change, such as an expiry of returned points, have no trace context. */
function toEvents({ transactions, lots }: LedgerRows, requests: ReadonlyMap<string, ChangeRequest>): NewEvent[] {
  const lotEnds = new Map(lots.map((lot) => [lot.lotId, lot.expiresAt]));
  return transactions.flatMap((transaction) => {
    const headers = requests.get(transaction.idempotencyKey)?.headers ?? {};
    return transactionEvent(transaction, { headers, expiresAt: lotEnds.get(transaction.id) ?? null }) ?? [];
  });
}

function toReplay({ key }: ChangeRequest, { transactionId, response }: ExistingTransaction): PostResult {
  if (!key) return { result: "replayed", transactionId };
  if (!response) return { result: "conflict", transactionId, problem: responseDeleted(transactionId) };
  const { requestHash, ...stored } = response;
  if (requestHash.equals(key.requestHash)) return { result: "replayed", transactionId, response: stored };
  return { result: "conflict", transactionId, problem: keyConflict() };
}

const responseDeleted = (transactionId: string) =>
  idempotencyConflict(
    `This Idempotency-Key posted transaction ${transactionId} more than 24 hours ago. Use a new key for a new command.`,
  );

function toDuplicate(first: PostResult | undefined): PostResult {
  if (!first) throw new Error("A change has no result.");
  return first.result === "posted" ? { result: "replayed", transactionId: first.applied.transaction.id } : first;
}
