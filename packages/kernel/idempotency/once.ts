/** Runs a command once per idempotency key, in a transaction. */
import { type Db, getSqlState, type Tx, transaction } from "../db/index.ts";
import { type Problem, problem } from "../problem/index.ts";
import { count } from "../telemetry/index.ts";
import { withTimeout } from "../worker/with-timeout.ts";
import * as store from "./store.ts";

export interface IdempotencyKey {
  /** Caller and route: keys of different callers or routes never meet. */
  readonly scope: string;
  /** 1 to 255 visible ASCII characters. */
  readonly key: string;
  /** The digest of the request body. */
  readonly requestHash: Buffer;
}

/** A response as a command returns it, before it is serialized and stored. */
export interface JsonResponse {
  readonly status: number;
  readonly body: unknown;
}

/** A stored response: the first time and at every replay the same bytes. */
export interface CommandResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  readonly replayed: boolean;
}

export interface OnceOptions {
  /** How long a duplicate waits for the first request. */
  readonly waitMs?: number;
}

export const idempotencyConflict = problem(
  409,
  "idempotency-conflict",
  "The idempotency key was used with another body",
);

export const idempotencyInProgress = problem(
  409,
  "idempotency-in-progress",
  "The first request with this idempotency key is not finished",
);

/** The Problem of a key that was first sent with another body. */
export const keyConflict = (): Problem =>
  idempotencyConflict("This Idempotency-Key was first sent with another body. Use a new key for a new command.");

/**
 * Runs `work` in a transaction, unless the key has a stored response. `work` may run again after a deadlock.
 *
 * Duplicates in this process wait in memory and not for the row lock: a hundred of them would otherwise hold every
 * connection of the pool and starve requests with other keys.
 */
export async function once(
  db: Db,
  key: IdempotencyKey,
  work: (tx: Tx) => Promise<JsonResponse>,
  { waitMs = 2_000 }: OnceOptions = {},
): Promise<CommandResponse> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const first = inFlightRequests(db).get(toName(key));
    if (!first) {
      const run = () => transaction(db, (tx) => runOrReplay(tx, key, work), { lockTimeoutMs: waitMs });
      return trackInFlight(db, key, run);
    }
    if (!(await settlesWithin(first, deadline - performance.now()))) throw inProgress();
    const response = await store.selectResponse(db, key);
    if (response) return replay(key, response);
  }
}

const requestsByDb = new WeakMap<Db, Map<string, Promise<unknown>>>();

/** The running requests of this process on this database, by key. */
function inFlightRequests(db: Db): Map<string, Promise<unknown>> {
  const requests = requestsByDb.get(db) ?? new Map<string, Promise<unknown>>();
  requestsByDb.set(db, requests);
  return requests;
}

async function trackInFlight<T>(db: Db, key: IdempotencyKey, run: () => Promise<T>): Promise<T> {
  const name = toName(key);
  const running = run();
  inFlightRequests(db).set(name, running);
  try {
    return await running;
  } finally {
    inFlightRequests(db).delete(name);
  }
}

const toName = ({ scope, key }: IdempotencyKey) => `${scope}\n${key}`;

async function runOrReplay(
  tx: Tx,
  key: IdempotencyKey,
  work: (tx: Tx) => Promise<JsonResponse>,
): Promise<CommandResponse> {
  if (!(await store.insertKey(tx, key).catch(rejectIfLocked))) {
    const first = await store.selectResponse(tx, key);
    if (!first) throw inProgress(); // It has just expired: the next request inserts the key again.
    return replay(key, first);
  }
  const { status, body } = await work(tx);
  const response = { status, contentType: "application/json; charset=utf-8", body: Buffer.from(JSON.stringify(body)) };
  await store.saveResponse(tx, key, response);
  count("todoke.idempotency.requests", { result: "first" });
  return { ...response, replayed: false };
}

function replay(key: IdempotencyKey, { requestHash, ...response }: store.StoredResponse): CommandResponse {
  if (!requestHash.equals(key.requestHash)) {
    count("todoke.idempotency.requests", { result: "conflict" });
    throw keyConflict();
  }
  count("todoke.idempotency.requests", { result: "replayed" });
  return { ...response, replayed: true };
}

/** A request of another process holds the key's row and has not finished in time. */
function rejectIfLocked(error: unknown): never {
  throw getSqlState(error) === "55P03" ? inProgress() : error;
}

function inProgress() {
  count("todoke.idempotency.requests", { result: "in_progress" });
  return idempotencyInProgress(
    "The first request with this key is still running. Send the same request again in a moment.",
    { retryAfterSeconds: 1 },
  );
}

/** Resolves to true if the promise resolves or rejects within `ms`. */
function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return withTimeout(Math.max(0, ms), Promise.allSettled([promise])).then(
    () => true,
    () => false,
  );
}
