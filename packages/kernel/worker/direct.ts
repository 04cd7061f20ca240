/**
 * A worker for jobs whose whole effect is in the database of their rows, or in none: a pass completes a batch, runs it and
 * commits, in one transaction. A pass that fails leaves its rows untouched.
 *
 * The worker with claims stands behind it, for everything that a pass must not decide: it counts attempts, delays retries,
 * dead-letters, and takes over expired leases. It also runs first: passes begin when it has drained the table. A job that kills
 * its process in a pass is then claimed, and its attempt counted, by the next process; it cannot kill without end
 * (docs/adr/0063).
 */
import { type Claims, type Completion, createClaims } from "../claims/index.ts";
import { type Db, transaction } from "../db/index.ts";
import type { Tx } from "../db/transaction.ts";
import { count, logFields, observeDuration } from "../telemetry/index.ts";
import { backoffMs } from "./backoff.ts";
import { createWorker, type Worker, type WorkerOptions } from "./index.ts";
import { type Loop, startLoop } from "./loop.ts";

/** What a pass does in its transaction. */
export interface TransactionalPass<Row extends object> {
  readonly db: Db;
  readonly complete: Completion<Row>;
  /** Does the work in the transaction. If it throws, nothing has happened. */
  readonly runInTransaction: (tx: Tx, rows: readonly Row[]) => Promise<void>;
}

/** If a pass fails, its rows are left to claims. */
export interface DirectWorkerOptions<Row extends object> extends TransactionalPass<Row> {
  /** The worker with claims. `wakeups` and `topic` wake the passes. */
  readonly claimed: WorkerOptions<Row>;
  /** Rows per pass. */
  readonly batchMax: number;
  /** A pass that also does what would follow in another transaction, if that is possible now. If it fails, ordinary passes run for a while. */
  readonly findLongerPass?: () => TransactionalPass<Row> | undefined;
  /** Called after the commit. */
  readonly onDone?: (rows: readonly Row[]) => void;
}

// After a failed pass, claims work alone for 0.1 s up to about 5 s.
const failureBackoff = { baseMs: 50, capMs: 5_000 };
/** The poll of the worker with claims finds what a lost wake-up leaves. */
const untilWoken = Number.POSITIVE_INFINITY;
/** As for claims: a row whose transaction was open for longer than this when it committed is left to the next full claim. */
const commitDelayMs = 2_000;

/** Past this time without a row, a poll claims new rows too: a wake-up may have been lost. */
const completingNewMs = 500;

/** The same claims; while `isCompletingNew`, of failed rows and expired leases only. */
function claimsBeside<Row extends object>(claims: Claims<Row>, isCompletingNew: () => boolean): Claims<Row> {
  const { table } = claims;
  const attempts = table.columns?.attempts ?? "attempt_count";
  const name = `failed ${table.name ?? `${table.table} ${table.key}`}`;
  const failed = createClaims<Row>({ ...table, name, claim: { ...table.claim, where: `t.${attempts} > 0` } });
  return { ...claims, claim: (db, request) => (isCompletingNew() ? failed : claims).claim(db, request) };
}

/** Creates both workers as one. Call `start()` to run them in the background. */
export function createDirectWorker<Row extends object>(options: DirectWorkerOptions<Row>): Worker {
  const { batchMax, findLongerPass, onDone } = options;
  const { wakeups, topic, onError, ...claimedOptions } = options.claimed;
  const { name, queue } = claimedOptions;
  let isDirect = false;
  let failures = 0;
  let directFrom = 0;
  let longerFailures = 0;
  let longerFrom = 0;
  let drainedAt = performance.now();
  /** When a pass last completed rows. */
  let busyAt = Number.NEGATIVE_INFINITY;
  let loop: Loop | undefined;

  /** While passes complete the new rows, claims must not compete for them. */
  const isCompletingNew = () => isDirect && performance.now() - busyAt < completingNewMs;
  const claimed = createWorker<Row>({
    ...claimedOptions,
    claims: claimsBeside(claimedOptions.claims, isCompletingNew),
    ...(onError && { onError }),
    onDrained() {
      if (isDirect || performance.now() < directFrom) return;
      isDirect = true;
      drainedAt = performance.now();
      loop?.wake();
    },
  });

  async function pass(): Promise<number> {
    const longer = performance.now() < longerFrom ? undefined : findLongerPass?.();
    if (!longer) return await run(options);
    try {
      const completed = await run(longer);
      longerFailures = 0;
      return completed;
    } catch (error) {
      longerFrom = performance.now() + backoffMs(++longerFailures, failureBackoff);
      count("todoke.worker.errors", { [logFields.worker]: name, step: "complete" });
      onError?.(
        new Error(`${name}: a pass with its consumer failed; the events are delivered to it`, { cause: error }),
      );
      return await run(options);
    }
  }

  async function run({ db, complete, runInTransaction }: TransactionalPass<Row>): Promise<number> {
    const startedAt = performance.now();
    const dueWithinMs = startedAt - drainedAt + commitDelayMs;
    const rows = await transaction(db, async (tx) => {
      const completed = await complete(tx, { limit: batchMax, dueWithinMs, ...(queue !== undefined && { queue }) });
      observeDuration("todoke.worker.claim.duration", startedAt, { worker: name });
      if (completed.length > 0) await runInTransaction(tx, completed);
      return completed;
    });
    failures = 0;
    if (rows.length < batchMax) drainedAt = startedAt;
    if (rows.length === 0) return 0;
    busyAt = performance.now();
    count("todoke.worker.jobs", { worker: name, outcome: "done" }, rows.length);
    onDone?.(rows);
    return rows.length;
  }

  async function passOrClaim(nextIn: (ms: number) => void): Promise<void> {
    nextIn(untilWoken);
    if (!isDirect) return claimed.wake();
    try {
      nextIn((await pass()) === batchMax ? 0 : untilWoken);
    } catch (error) {
      isDirect = false;
      directFrom = performance.now() + backoffMs(++failures, failureBackoff);
      claimed.wake();
      count("todoke.worker.errors", { [logFields.worker]: name, step: "complete" });
      onError?.(new Error(`${name}: a pass failed; its rows are left to claims`, { cause: error }));
    }
  }

  return {
    runOnce: claimed.runOnce,
    wake: () => loop?.wake(),
    start() {
      if (loop) return;
      claimed.start();
      loop = startLoop((_, nextIn) => passOrClaim(nextIn), {
        intervalMs: 0, // Every pass sets its own wait.
        ...(wakeups && { wakeups }),
        ...(topic !== undefined && { topic }),
      });
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };

  async function stop(): Promise<void> {
    await Promise.all([loop?.[Symbol.asyncDispose](), claimed.stop()]);
  }
}
