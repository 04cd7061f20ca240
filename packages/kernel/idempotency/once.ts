/** Carries out a command once per key. */
import { type Db, sqlStateOf, type Tx, transaction } from "../db/index.ts";
import { problem } from "../problem/index.ts";
import { count } from "../telemetry/index.ts";
import * as store from "./store.ts";

export interface IdempotencyKey {
  /** Who asked for what: caller and route. One caller's key never meets another's. */
  readonly scope: string;
  /** 1 to 255 visible ASCII characters. */
  readonly key: string;
  /** `digestOf` the body. */
  readonly requestHash: Buffer;
}

/** What a command has to say; it becomes the stored bytes. */
export interface Result {
  readonly status: number;
  readonly body: unknown;
}

/** What is sent, now and at every replay. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  readonly replayed: boolean;
}

export interface OnceOptions {
  /** How long a duplicate waits for the first request. */
  readonly waitMs?: number;
  readonly ttlMs?: number;
}

export const idempotencyConflict = problem({
  code: "idempotency-conflict",
  status: 409,
  title: "The idempotency key was used with another body",
});

export const idempotencyInProgress = problem({
  code: "idempotency-in-progress",
  status: 409,
  title: "The first request with this idempotency key is not finished",
});

const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Runs `work` in a transaction unless the key has an answer; `work` may run again after a deadlock.
 *
 * Duplicates within this process wait here rather than on the row's lock: a hundred of them would otherwise hold every
 * connection of the pool, and requests with other keys would starve.
 */
export async function once(
  db: Db,
  key: IdempotencyKey,
  work: (tx: Tx) => Promise<Result>,
  { waitMs = 2_000, ttlMs = dayMs }: OnceOptions = {},
): Promise<Answer> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const first = underWay(db).get(nameOf(key));
    if (!first) {
      return holding(db, key, () => transaction(db, (tx) => carryOut(tx, key, work, ttlMs), { lockTimeoutMs: waitMs }));
    }
    if (!(await endsWithin(first, deadline - performance.now()))) throw inProgress();
    const answer = await store.readAnswer(db, key);
    if (answer) return replay(key, answer);
  }
}

const requests = new WeakMap<Db, Map<string, Promise<unknown>>>();

/** The requests of this process that are being carried out on this database, by key. */
function underWay(db: Db): Map<string, Promise<unknown>> {
  const known = requests.get(db) ?? new Map<string, Promise<unknown>>();
  requests.set(db, known);
  return known;
}

async function holding<T>(db: Db, key: IdempotencyKey, work: () => Promise<T>): Promise<T> {
  const name = nameOf(key);
  const running = work();
  underWay(db).set(name, running);
  try {
    return await running;
  } finally {
    underWay(db).delete(name);
  }
}

const nameOf = ({ scope, key }: IdempotencyKey) => `${scope}\n${key}`;

async function carryOut(
  tx: Tx,
  key: IdempotencyKey,
  work: (tx: Tx) => Promise<Result>,
  ttlMs: number,
): Promise<Answer> {
  if (!(await store.insertKey(tx, key, ttlMs).catch(refuseIfLocked))) {
    const first = await store.readAnswer(tx, key);
    if (!first) throw inProgress(); // It expired in this very moment: the next try finds it gone.
    return replay(key, first);
  }
  const { status, body } = await work(tx);
  const answer = { status, contentType: "application/json; charset=utf-8", body: Buffer.from(JSON.stringify(body)) };
  await store.saveAnswer(tx, key, answer);
  count("todoke.idempotency.requests", { result: "first" });
  return { ...answer, replayed: false };
}

function replay(key: IdempotencyKey, { requestHash, ...answer }: store.StoredAnswer): Answer {
  if (!requestHash.equals(key.requestHash)) {
    count("todoke.idempotency.requests", { result: "conflict" });
    throw idempotencyConflict("this Idempotency-Key was first sent with another body; use a new key for a new command");
  }
  count("todoke.idempotency.requests", { result: "replayed" });
  return { ...answer, replayed: true };
}

/** The key's row is locked by a request of another process that has not finished in time. */
function refuseIfLocked(error: unknown): never {
  throw sqlStateOf(error) === "55P03" ? inProgress() : error;
}

function inProgress() {
  count("todoke.idempotency.requests", { result: "in_progress" });
  return idempotencyInProgress("send the same request again in a moment", { retryAfterSeconds: 1 });
}

async function endsWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, Math.max(0, ms), false);
  const ended = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([ended, late]).finally(() => clearTimeout(timer));
}
