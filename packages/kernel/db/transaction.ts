/** One transaction: all of it or nothing, and the truth about which. */
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { checkIn, checkOut } from "./check-out.ts";
import { CommitUnknown, isRolledBack, isUnavailable, lostARace, sqlStateOf } from "./errors.ts";
import type { Db } from "./pool.ts";

declare const insideTransaction: unique symbol;

/** A connection inside an open transaction. Only `transaction` makes one, so to hold it is proof. */
export type Tx = pg.PoolClient & { readonly [insideTransaction]: true };

export interface TransactionOptions {
  /** How long it may wait for a lock before it fails with 55P03. */
  readonly lockTimeoutMs?: number;
}

// Five tries with a jittered pause end nearly every deadlock; what still fails then needs a reader, not a loop.
const triesMax = 5;

/** Runs `work` in one transaction: commits what it did, or leaves no trace of it. `work` may run more than once. */
export async function transaction<T>(
  db: Db,
  work: (tx: Tx) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  return retryingRaces(() => attempt(db, work, options));
}

async function attempt<T>(db: Db, work: (tx: Tx) => Promise<T>, options: TransactionOptions): Promise<T> {
  const tx = (await checkOut(db)) as Tx;
  const hooks: (() => void)[] = [];
  afterCommitHooks.set(tx, hooks);
  let broken = false;
  try {
    // Waited for, though it is a round trip: a BEGIN that is cancelled leaves no transaction, and what was sent behind it
    // would commit by itself.
    await tx.query(begin(options));
    const result = await work(tx);
    await commit(tx);
    for (const hook of hooks) hook();
    return result;
  } catch (error) {
    // What is not an answer of the server leaves the connection in an unknown state: it must not be used again.
    broken = error instanceof CommitUnknown || isUnavailable(error) || !(await rollBack(tx));
    throw error;
  } finally {
    afterCommitHooks.delete(tx);
    checkIn(tx, broken);
  }
}

function begin({ lockTimeoutMs }: TransactionOptions): string {
  return lockTimeoutMs === undefined ? "begin" : `begin; set local lock_timeout = ${Math.round(lockTimeoutMs)}`;
}

async function commit(tx: Tx): Promise<void> {
  const result = await tx.query("commit").catch((error) => {
    throw isRolledBack(error) ? error : new CommitUnknown(error);
  });
  // COMMIT of a transaction that has failed is answered with ROLLBACK and no error at all.
  if (result.command !== "COMMIT") {
    throw new Error("the transaction was rolled back: a statement in it failed and its error was swallowed");
  }
}

async function rollBack(tx: Tx): Promise<boolean> {
  return tx.query("rollback").then(
    () => true,
    () => false,
  );
}

const afterCommitHooks = new WeakMap<Tx, (() => void)[]>();

/** Runs `hook` once this transaction has committed; never if it does not. For wake-ups, not for work. */
export function afterCommit(tx: Tx, hook: () => void): void {
  const hooks = afterCommitHooks.get(tx);
  if (!hooks) throw new Error("afterCommit was called outside its transaction");
  hooks.push(hook);
}

/**
 * Runs one statement that is a transaction of its own: one round trip. As with COMMIT, a connection lost while it ran
 * leaves the outcome unknown.
 */
export async function statement<Row extends pg.QueryResultRow>(
  db: Db,
  query: pg.QueryConfig,
): Promise<pg.QueryResult<Row>> {
  return retryingRaces(async () => {
    const client = await checkOut(db); // A failure up to here is certain: nothing was sent.
    let broken = false;
    try {
      return await client.query<Row>(query);
    } catch (error) {
      broken = sqlStateOf(error) === undefined;
      throw isRolledBack(error) ? error : new CommitUnknown(error);
    } finally {
      checkIn(client, broken);
    }
  });
}

async function retryingRaces<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (tries >= triesMax || !lostARace(error)) throw error;
      await sleep(2 ** tries * 5 * (0.5 + Math.random()));
    }
  }
}
