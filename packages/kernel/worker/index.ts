/**
 * The worker: claims rows, runs them as jobs and settles them.
 *
 * Up to `concurrency` jobs run at once, and finished ones are settled in batches. A wake-up or the due time of a retry
 * starts the next claim early; the poll finds everything else. Leases are renewed while jobs run. `stop` ends claiming,
 * waits for running jobs and releases the rest, so that another worker can claim them at once. Errors are reported and
 * never thrown; a row whose settlement failed is claimable again when its lease expires.
 */
import type { Claimed, Claims } from "../claims/index.ts";
import type { Db } from "../db/index.ts";
import { ContextError, count, eventContext, logFields } from "../telemetry/index.ts";
import { type Backoff, defaultBackoff } from "./backoff.ts";
import { createClaimer } from "./claimer.ts";
import { type JobResult, trackInFlightJobs } from "./in-flight-jobs.ts";
import { latch } from "./latch.ts";
import { type Loop, startLoop } from "./loop.ts";
import type { JobOutcome } from "./outcome.ts";
import type { Wakeups } from "./wakeups.ts";

export { inAggregateOrder } from "./aggregate-order.ts";
export { type Backoff, backoffMs, defaultBackoff } from "./backoff.ts";
export { describeError } from "./describe-error.ts";
export { createDirectWorker, type DirectWorkerOptions, type TransactionalPass } from "./direct.ts";
export { type Loop, type LoopOptions, type Pass, startLoop } from "./loop.ts";
export { dead, done, type JobOutcome, type Outcome, release, retry, type SelfSettled } from "./outcome.ts";
export { type RunBatchesOptions, runBatches } from "./run-batches.ts";
export { shareWakeups } from "./shared-wakeups.ts";
export { notifyTopic, openWakeups, type Wakeups, type WakeupsOptions } from "./wakeups.ts";
export { withTimeout } from "./with-timeout.ts";

export interface WorkerSettings {
  /** Rows per claim. */
  readonly batchMax: number;
  /** Jobs that run at once. With twice the batch, one batch runs while the next is claimed. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** How long a due row waits if every wake-up is lost; each wait is 0.5 to 1.5 times this. */
  readonly pollMs: number;
  readonly attemptsMax: number;
  readonly backoff: Backoff;
  /** How long `stop` waits for running jobs. */
  readonly drainMs: number;
}

export const defaultWorkerSettings: WorkerSettings = {
  batchMax: 50,
  concurrency: 100,
  leaseMs: 30_000,
  pollMs: 1_000,
  attemptsMax: 10,
  backoff: defaultBackoff,
  drainMs: 10_000,
};

export interface Lease {
  /** Aborted when the lease is lost or the worker stops: the outcome of the job no longer counts. */
  readonly signal: AbortSignal;
  /** Stops claiming for `ms`, because a dependency of every job is unavailable. */
  pause(ms: number): void;
}

/** The leases of jobs that were claimed together. Each can be lost on its own. */
export interface Leases {
  /** The lease of one of the jobs. */
  of(job: Claimed<object>): Lease;
  /** As `Lease.pause`. */
  pause(ms: number): void;
}

export interface WorkerOptions<Row extends object> {
  /** For metrics and `locked_by`. */
  readonly name: string;
  readonly db: Db;
  readonly claims: Claims<Row>;
  readonly queue?: string;
  /** Starts the jobs and returns their outcomes in input order. A thrown Problem is dead, any other error a retry. */
  readonly run: (jobs: readonly Claimed<Row>[], leases: Leases) => readonly Promise<JobOutcome>[];
  readonly settings?: Partial<WorkerSettings>;
  readonly wakeups?: Wakeups;
  /** The topic whose signals wake this worker. */
  readonly topic?: string;
  /** Called after each claim that found fewer rows than it asked for: all due rows are claimed. */
  readonly onDrained?: () => void;
  /** Called with errors that no caller awaits: failed steps that will be retried, and dead-lettered jobs. */
  readonly onError?: (error: unknown) => void;
}

/** The number of jobs that one run claimed, and their results. */
export type RunSummary = { readonly claimed: number } & { readonly [result in JobResult]: number };

export interface Worker extends AsyncDisposable {
  /** Claims once and waits until all claimed jobs are settled. For tests, which then need no timers. */
  runOnce(): Promise<RunSummary>;
  /** Works until stopped. */
  start(): void;
  /** Hints that there may be rows to claim. */
  wake(): void;
  /** Waits for running jobs and releases those that have not finished within `drainMs`. */
  stop(): Promise<void>;
}

const claimErrorBackoff = { baseMs: 50, capMs: 5_000 };

/** Creates a worker for a claimed table. Call `start()` to run it in the background. */
export function createWorker<Row extends object>(options: WorkerOptions<Row>): Worker {
  const { name, db, claims, wakeups, topic } = options;
  const settings: WorkerSettings = { ...defaultWorkerSettings, ...options.settings };
  const { batchMax, concurrency, leaseMs, pollMs, drainMs } = settings;
  const { claim } = createClaimer({ ...options, claims }, settings);
  // Claiming one row for each slot that becomes free would cost more than the job.
  const roomWanted = Math.min(batchMax, Math.ceil(concurrency / 4));

  const roomMade = latch();
  const stopped = latch();
  let stopping = false;
  let pausedUntil = 0;
  let loop: Loop | undefined;
  let renewal: NodeJS.Timeout | undefined;
  const wake = () => loop?.wake();

  const inFlight = trackInFlightJobs<Row>({
    name,
    db,
    claims,
    run: options.run,
    settings,
    onError: failed,
    onDead(job, reason) {
      const fields = { ...eventContext(job), [logFields.worker]: name, [logFields.attempt]: job.claim.attempt };
      options.onError?.(new ContextError(`${name}: job ${job.claim.key} is dead: ${reason}`, { context: fields }));
    },
    pause(ms) {
      pausedUntil = Math.max(pausedUntil, performance.now() + ms);
    },
    onFinished(delayMs = 0) {
      if (claims.table.order) wake(); // The next row of the same aggregate is due.
      // The poll would find a retry up to twice as late. One ms more, because a timer may fire one too early.
      if (delayMs > 0 && delayMs < 2 * pollMs) setTimeout(wake, Math.ceil(delayMs) + 1).unref();
      roomMade.open();
    },
  });

  function failed(step: string, error: unknown): void {
    const fields = { [logFields.worker]: name };
    count("todoke.worker.errors", { ...fields, step });
    options.onError?.(new ContextError(`${name}: ${step} failed`, { cause: error, context: fields }));
  }

  const room = () => concurrency - inFlight.size;

  async function claimAndBegin(nextIn: (ms: number) => void): Promise<void> {
    while (room() < roomWanted && !stopping) {
      roomMade.close();
      await roomMade.wait();
    }
    const pauseMs = pausedUntil - performance.now();
    if (pauseMs > 0) await stopped.wait(pauseMs);
    if (stopping) return;
    const limit = Math.min(batchMax, room());
    const jobs = await claim(limit);
    inFlight.begin(jobs);
    if (jobs.length < limit) options.onDrained?.();
    if (jobs.length > 0) nextIn(0);
  }

  function start(): void {
    if (loop || stopping) return;
    // A third of the lease, so that one renewal may fail. Not a loop: its jitter could make the third a half.
    renewal = setInterval(() => void inFlight.renew().catch((error) => failed("renew", error)), leaseMs / 3);
    loop = startLoop((_, nextIn) => claimAndBegin(nextIn), {
      intervalMs: pollMs,
      backoff: claimErrorBackoff,
      onError: (error) => failed("claim", error),
      ...(wakeups && { wakeups }),
      ...(topic !== undefined && { topic }),
    });
  }

  async function stop(): Promise<void> {
    stopping = true;
    for (const each of [roomMade, stopped]) each.open();
    await loop?.[Symbol.asyncDispose]();
    await inFlight.drained(drainMs);
    if (inFlight.size > 0) await inFlight.abandon(1_000);
    clearInterval(renewal);
  }

  return {
    async runOnce() {
      const jobs = await claim(batchMax, { full: true });
      return summarize(await Promise.all(inFlight.begin(jobs)));
    },
    start,
    wake,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function summarize(results: readonly JobResult[]): RunSummary {
  const countOf = (kind: JobResult) => results.filter((result) => result === kind).length;
  return {
    claimed: results.length,
    done: countOf("done"),
    retry: countOf("retry"),
    dead: countOf("dead"),
    release: countOf("release"),
    settled: countOf("settled"),
    leaseLost: countOf("leaseLost"),
  };
}
