/** Transactions that commit all of their work or nothing, and report a lost COMMIT as unknown. */
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { backoffMs } from "../worker/backoff.ts";
import { isUnreplicated } from "./client.ts";
import { CommitUnknown, getSqlState, isRolledBack, isSerializationFailure, isUnavailable } from "./errors.ts";
import { acquireClient, type Db, releaseClient } from "./pool.ts";

declare const insideTransaction: unique symbol;

/** A connection inside an open transaction. Only `transaction` creates one, so having it is proof. */
export type Tx = pg.PoolClient & { readonly [insideTransaction]: true };

export interface TransactionOptions {
  /** How long to wait for a lock before failing with 55P03. */
  readonly lockTimeoutMs?: number;
}

// Five attempts with jitter resolve nearly every deadlock; one that remains needs a fix, not another attempt.
const attemptsMax = 5;
const retryBackoff = { baseMs: 5, capMs: 100 };

/** Runs `work` in one transaction and commits it, or leaves no trace of it. `work` may run more than once. */
export async function transaction<T>(
  db: Db,
  work: (tx: Tx) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  return withRetry(() => attempt(db, work, options));
}

async function attempt<T>(db: Db, work: (tx: Tx) => Promise<T>, options: TransactionOptions): Promise<T> {
  const tx = (await acquireClient(db)) as Tx;
  const hooks: (() => void)[] = [];
  afterCommitHooks.set(tx, hooks);
  let broken = false;
  try {
    // Awaited although it costs a round trip: after a cancelled BEGIN, a statement already sent would commit on its own.
    await tx.query(begin(options));
    const result = await work(tx);
    await commit(tx);
    for (const hook of hooks) hook();
    return result;
  } catch (error) {
    // An error that the server did not send leaves the connection in an unknown state: do not reuse it.
    broken = error instanceof CommitUnknown || isUnavailable(error) || !(await rollBack(tx));
    throw error;
  } finally {
    afterCommitHooks.delete(tx);
    releaseClient(tx, broken);
  }
}

function begin({ lockTimeoutMs }: TransactionOptions): string {
  return lockTimeoutMs === undefined ? "begin" : `begin; set local lock_timeout = ${Math.round(lockTimeoutMs)}`;
}

async function commit(tx: Tx): Promise<void> {
  const result = await tx.query("commit").catch((error) => {
    throw isRolledBack(error) ? error : new CommitUnknown(error);
  });
  if (isUnreplicated(tx)) throw new CommitUnknown(notReplicated());
  // PostgreSQL replies to COMMIT in a failed transaction with ROLLBACK and without an error.
  if (result.command !== "COMMIT") {
    throw new Error("the transaction was rolled back: a statement in it failed and its error was swallowed");
  }
}

const notReplicated = () => new Error("the standby did not confirm the commit: the wait for it was cancelled");

async function rollBack(tx: Tx): Promise<boolean> {
  return tx.query("rollback").then(
    () => true,
    () => false,
  );
}

const afterCommitHooks = new WeakMap<Tx, (() => void)[]>();

/** Calls `hook` after this transaction has committed, and not if it does not. For wake-ups, not for work. */
export function afterCommit(tx: Tx, hook: () => void): void {
  const hooks = afterCommitHooks.get(tx);
  if (!hooks) throw new Error("afterCommit was called outside its transaction");
  hooks.push(hook);
}

/**
 * Runs one autocommitted statement: one round trip, one transaction. A connection lost while it runs is `CommitUnknown`.
 * In a transaction it is a statement like any other.
 */
export async function runStatement<Row extends pg.QueryResultRow>(
  db: Db | Tx,
  query: pg.QueryConfig,
): Promise<pg.QueryResult<Row>> {
  if (!("totalCount" in db)) return db.query<Row>(query);
  return withRetry(async () => {
    const client = await acquireClient(db); // If this fails, nothing was sent.
    let broken = false;
    try {
      const result = await client.query<Row>(query);
      if (isUnreplicated(client)) throw notReplicated();
      return result;
    } catch (error) {
      // A server that was just demoted would reject every later statement too.
      broken = getSqlState(error) === undefined || isUnavailable(error);
      throw isRolledBack(error) ? error : new CommitUnknown(error);
    } finally {
      releaseClient(client, broken);
    }
  });
}

/** Retries serialization failures and deadlocks. */
async function withRetry<T>(run: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await run();
    } catch (error) {
      if (attempts >= attemptsMax || !isSerializationFailure(error)) throw error;
      await sleep(backoffMs(attempts, retryBackoff));
    }
  }
}
