/**
 * The loop over claims: takes rows, has them worked, settles them.
 *
 * Several jobs run at once, up to `concurrency`, and finished ones are settled together. Wake-ups cut the wait short,
 * and so does the time at which a job is to be tried again; the poll, with jitter, is the guarantee. While work goes on,
 * its leases are renewed. `stop` ends claiming, waits for what runs, and gives the rest back, so that another worker has
 * it at once. Nothing here throws: what fails is reported, and rows whose settlement failed come back when their lease
 * lapses.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Claimed, Claims } from "../claims/index.ts";
import type { Db } from "../db/index.ts";
import { aboutEvent, count, ErrorAbout, logFields, observeDuration } from "../telemetry/index.ts";
import { type Backoff, defaultBackoff } from "./backoff.ts";
import { type Ended, heldJobs } from "./held.ts";
import { latch } from "./latch.ts";
import type { JobOutcome } from "./outcome.ts";
import type { Wakeups } from "./wakeups.ts";

export { type Backoff, backoffMs, defaultBackoff } from "./backoff.ts";
export { describeError } from "./held.ts";
export { latch } from "./latch.ts";
export { dead, done, type JobOutcome, type Outcome, release, retry, type Settled } from "./outcome.ts";
export { type Period, periodically } from "./periodically.ts";
export { openWakeups, type Wakeups, type WakeupsOptions, wakeOthers } from "./wakeups.ts";
export { inWaves } from "./waves.ts";

export interface WorkerSettings {
  /** Rows taken by one claim. */
  readonly batchMax: number;
  /** Jobs that run at once. Twice the batch lets one batch be worked while the next is claimed. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** How long work may wait when every wake-up was lost; each wait is 0.5 to 1.5 times this. */
  readonly pollMs: number;
  readonly attemptsMax: number;
  readonly backoff: Backoff;
  /** How long `stop` waits for what runs. */
  readonly drainMs: number;
}

export const defaultSettings: WorkerSettings = {
  batchMax: 50,
  concurrency: 100,
  leaseMs: 30_000,
  pollMs: 1_000,
  attemptsMax: 10,
  backoff: defaultBackoff,
  drainMs: 10_000,
};

export interface Lease {
  /** Fires when the lease is lost or the worker has to stop: whatever is still going on no longer counts. */
  readonly signal: AbortSignal;
  /** Has the worker claim nothing for `ms`: what all its work depends on is away. */
  rest(ms: number): void;
}

/** The leases of jobs that were claimed together. Each is lost alone: another job's lease says nothing about this one's. */
export interface Leases extends Pick<Lease, "rest"> {
  /** The lease of one of the jobs that `run` was given. */
  of(job: Claimed<object>): Lease;
}

export interface WorkerOptions<Row extends object> {
  /** For metrics, and for the operator who looks at locked_by. */
  readonly name: string;
  readonly db: Db;
  readonly claims: Claims<Row>;
  readonly queue?: string;
  /** Starts the jobs and answers each in its place. A rejection is a retry, or the end of it when it is a Problem. */
  readonly run: (jobs: readonly Claimed<Row>[], leases: Leases) => readonly Promise<JobOutcome>[];
  readonly settings?: Partial<WorkerSettings>;
  readonly wakeups?: Wakeups;
  /** The topic whose signals wake this worker. */
  readonly topic?: string;
  /** Hears of what nobody waits for: steps that failed and come again, and jobs that were given up. */
  readonly onError?: (error: unknown) => void;
}

/** What one round did. */
export type Round = { readonly claimed: number } & { readonly [ended in Ended]: number };

export interface Worker extends AsyncDisposable {
  /** One claim and all that it leads to. Tests call this, so that no test waits for a timer. */
  runOnce(): Promise<Round>;
  /** Works until stopped. */
  start(): void;
  /** There may be something to do. */
  wake(): void;
  /** Finishes what runs, and gives back what cannot be finished within `drainMs`. */
  stop(): Promise<void>;
}

/** So long may a transaction have been open when it commits, for its row not to wait for the next complete claim. */
const lateMs = 2_000;

export function worker<Row extends object>(options: WorkerOptions<Row>): Worker {
  const { name, db, claims, queue, wakeups, topic } = options;
  const settings: WorkerSettings = { ...defaultSettings, ...options.settings };
  const { batchMax, concurrency, leaseMs, pollMs, drainMs } = settings;
  const id = `${name}@${hostname()}:${process.pid}:${randomBytes(3).toString("hex")}`;
  // With every slot taken but one, a claim of one row per job would cost more than the job.
  const roomWanted = Math.min(batchMax, Math.ceil(concurrency / 4));

  const woken = latch();
  const roomMade = latch();
  const stopped = latch();
  let stopping = false;
  let restUntil = 0;
  let loop: Promise<void> | undefined;
  let renewal: NodeJS.Timeout | undefined;

  const held = heldJobs<Row>({
    name,
    db,
    claims,
    run: options.run,
    settings,
    onError: failed,
    onDead(job, why) {
      const about = { ...aboutEvent(job), [logFields.worker]: name, [logFields.attempt]: job.claim.attempt };
      options.onError?.(new ErrorAbout(`${name}: gave up ${job.claim.key}: ${why}`, { about }));
    },
    rest(ms) {
      restUntil = Math.max(restUntil, performance.now() + ms);
    },
    onEnded(inMs = 0) {
      if (claims.table.order) woken.open(); // The next row of the same aggregate has its turn now.
      // The poll would find it twice as late; and so it would if the timer, which may fire up to a millisecond early, did.
      if (inMs > 0 && inMs < 2 * pollMs) setTimeout(woken.open, Math.ceil(inMs) + 1).unref();
      roomMade.open();
    },
  });

  function failed(step: string, error: unknown): void {
    count("todoke.worker.errors", { worker: name, step });
    const about = { [logFields.worker]: name };
    options.onError?.(new ErrorAbout(`${name}: ${step} failed`, { cause: error, about }));
  }

  /** When everything that is due was last asked for, and when a claim last came back with room to spare. */
  let completeAt = Number.NEGATIVE_INFINITY;
  let emptiedAt = Number.NEGATIVE_INFINITY;
  let completeTookMs = 0;
  // One that walks over millions of dead entries takes seconds: it gets a tenth of the time, but nobody's rows wait for
  // more than a tenth of their lease.
  const completeEveryMs = () => Math.min(Math.max(pollMs / 2, 9 * completeTookMs), leaseMs / 10);

  async function claim(limit: number): Promise<Claimed<Row>[]> {
    const askedAt = performance.now();
    const isComplete = askedAt - completeAt >= completeEveryMs() || emptiedAt === Number.NEGATIVE_INFINITY;
    const jobs = await claims.claim(db, {
      limit,
      leaseMs,
      worker: id,
      ...(queue !== undefined && { queue }),
      ...(!isComplete && { freshMs: askedAt - emptiedAt + lateMs }),
    });
    if (isComplete) {
      completeAt = performance.now();
      completeTookMs = completeAt - askedAt;
    }
    if (jobs.length < limit) emptiedAt = askedAt;
    observeDuration("todoke.worker.claim.duration", askedAt, { worker: name });
    // An answer that took longer than the lease brings rows that somebody else may hold by now.
    return performance.now() - askedAt < leaseMs ? jobs : [];
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopping) {
      await restIfTold();
      roomMade.close();
      const room = concurrency - held.size;
      if (room < roomWanted) {
        await roomMade.wait();
        continue;
      }
      woken.close();
      try {
        const jobs = stopping ? [] : await claim(Math.min(batchMax, room));
        failures = 0;
        held.begin(jobs);
        // A stop that came just before `woken.close` is not waited out.
        if (jobs.length === 0 && !stopping) await woken.wait(pollMs * (0.5 + Math.random()));
      } catch (error) {
        failed("claim", error);
        await stopped.wait(Math.min(5_000, 100 * 2 ** failures++) * (0.5 + Math.random()));
      }
    }
  }

  async function restIfTold(): Promise<void> {
    const restMs = restUntil - performance.now();
    if (restMs > 0) await stopped.wait(restMs);
  }

  let unsubscribe: (() => void) | undefined;

  function start(): void {
    if (loop || stopping) return;
    unsubscribe = topic === undefined ? undefined : wakeups?.on(topic, woken.open);
    // A third of the lease leaves room for one renewal to fail.
    renewal = setInterval(() => void held.renew().catch((error) => failed("renew", error)), leaseMs / 3);
    loop = run();
  }

  async function stop(): Promise<void> {
    stopping = true;
    unsubscribe?.();
    for (const each of [woken, roomMade, stopped]) each.open();
    await loop;
    await held.drained(drainMs);
    if (held.size > 0) await held.abandon(1_000);
    clearInterval(renewal);
  }

  return {
    async runOnce() {
      completeAt = Number.NEGATIVE_INFINITY;
      const jobs = await claim(batchMax);
      return tally(await Promise.all(held.begin(jobs)));
    },
    start,
    wake: woken.open,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function tally(ends: readonly Ended[]): Round {
  const of = (kind: Ended) => ends.filter((ended) => ended === kind).length;
  return {
    claimed: ends.length,
    done: of("done"),
    retry: of("retry"),
    dead: of("dead"),
    release: of("release"),
    settled: of("settled"),
    leaseLost: of("leaseLost"),
  };
}
