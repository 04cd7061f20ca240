/**
 * The jobs that a worker holds: starts them, renews their leases, and settles each as soon as it is finished, together
 * with whatever else is finished by then.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Claimed, Claims } from "../claims/index.ts";
import type { Db } from "../db/index.ts";
import { gather } from "../gather/index.ts";
import { Problem } from "../problem/index.ts";
import { count } from "../telemetry/index.ts";
import { backoffMs } from "./backoff.ts";
import type { Leases, WorkerSettings } from "./index.ts";
import { dead, type JobOutcome, type Outcome, release, retry } from "./outcome.ts";

export type Ended = JobOutcome["kind"] | "leaseLost";

export interface HeldOptions<Row extends object> {
  readonly name: string;
  readonly db: Db;
  readonly claims: Claims<Row>;
  readonly run: (jobs: readonly Claimed<Row>[], leases: Leases) => readonly Promise<JobOutcome>[];
  readonly settings: WorkerSettings;
  readonly onError: (step: string, error: unknown) => void;
  readonly onDead: (job: Claimed<Row>, why: string) => void;
  /** Called when a job is over and its outcome, if it counted, is in the database; with when it may be tried again. */
  readonly onEnded: (inMs: number | undefined) => void;
  readonly rest: (ms: number) => void;
}

export interface Held<Row extends object> {
  readonly size: number;
  /** Starts the jobs. The promises tell how each ended and never reject. */
  begin(jobs: readonly Claimed<Row>[]): Promise<Ended>[];
  renew(): Promise<void>;
  /** Tells the jobs to stop, and gives back those that have not after `graceMs`. */
  abandon(graceMs: number): Promise<void>;
  /** Resolves when nothing is held, or after `ms`. */
  drained(ms: number): Promise<void>;
}

export function heldJobs<Row extends object>(options: HeldOptions<Row>): Held<Row> {
  const { name, db, claims, run, settings, onError, onDead, onEnded, rest } = options;
  type Job = Claimed<Row>;
  interface Holding {
    readonly abort: AbortController;
    /** Ours by our own clock; after this moment only the fence says. */
    leaseEndsAt: number;
    readonly ended: Promise<Ended>;
  }
  const held = new Map<Job, Holding>();

  const settleTogether = gather<{ job: Job; outcome: Outcome }, { won: boolean }>({
    batchMax: 1_000,
    waitingMax: Number.POSITIVE_INFINITY, // Bounded by `concurrency`: only held jobs are settled.
    run: async (finished) => {
      const won = await claims.settle(
        db,
        finished.map(({ job, outcome }) => ({ claim: job.claim, outcome })),
      );
      return won.map((each) => ({ won: each }));
    },
  });

  function begin(jobs: readonly Job[]): Promise<Ended>[] {
    const aborts = new Map<Claimed<object>, AbortController>(jobs.map((job) => [job, new AbortController()]));
    const abortOf = (job: Claimed<object>) => aborts.get(job) as AbortController;
    const fit = jobs.filter((job) => job.claim.attempt <= settings.attemptsMax);
    const running = start(fit, { of: (job) => ({ signal: abortOf(job).signal, rest }), rest });
    const outcomes = new Map(fit.map((job, place) => [job, running[place]]));
    return jobs.map((job) => {
      const ended = finish(job, outcomes.get(job) ?? Promise.resolve(gaveUp(job)));
      held.set(job, { abort: abortOf(job), leaseEndsAt: performance.now() + settings.leaseMs, ended });
      return ended;
    });
  }

  function start(jobs: readonly Job[], leases: Leases): readonly Promise<JobOutcome>[] {
    if (jobs.length === 0) return [];
    try {
      return run(jobs, leases);
    } catch (error) {
      return jobs.map(() => Promise.reject(error));
    }
  }

  async function finish(job: Job, running: Promise<JobOutcome>): Promise<Ended> {
    const tried = await running.catch((error) => outcomeOfError(error, job.claim.attempt, settings));
    const outcome = lastTry(tried, job, settings);
    const won = outcome.kind === "settled" ? outcome.won : held.has(job) && (await settle(job, outcome));
    held.delete(job);
    const ended = won ? outcome.kind : "leaseLost";
    count("todoke.worker.jobs", { worker: name, outcome: won ? outcome.kind : "lease_lost" });
    if (won && outcome.kind === "dead") onDead(job, outcome.why);
    onEnded("inMs" in outcome ? outcome.inMs : undefined);
    return ended;
  }

  /** A settlement that cannot reach the database is tried again as long as the lease may still be ours. */
  async function settle(job: Job, outcome: Outcome): Promise<boolean> {
    for (;;) {
      try {
        return (await settleTogether({ job, outcome })).won;
      } catch (error) {
        onError("settle", error);
        const leaseEndsAt = held.get(job)?.leaseEndsAt ?? 0;
        if (performance.now() > leaseEndsAt) return false;
        await sleep(100 + Math.random() * 200);
      }
    }
  }

  async function renew(): Promise<void> {
    const jobs = [...held.keys()];
    const askedAt = performance.now();
    const ours = await claims.renew(
      db,
      jobs.map((job) => job.claim),
      settings.leaseMs,
    );
    jobs.forEach((job, place) => {
      const holding = held.get(job);
      if (!holding) return; // Finished in the meantime.
      if (ours[place]) holding.leaseEndsAt = askedAt + settings.leaseMs;
      else holding.abort.abort(new Error("the lease was lost: another worker holds this job now"));
    });
  }

  async function drained(ms: number): Promise<void> {
    const stop = new AbortController();
    const allEnded = Promise.all([...held.values()].map((holding) => holding.ended));
    await Promise.race([allEnded, sleep(ms, undefined, { signal: stop.signal }).catch(() => {})]);
    stop.abort();
  }

  async function abandon(graceMs: number): Promise<void> {
    for (const { abort } of held.values()) abort.abort(new Error("the worker is stopping"));
    await drained(graceMs);
    const abandoned = [...held.keys()];
    for (const job of abandoned) held.delete(job); // From here on, what these jobs say no longer counts.
    const outcome = release("the worker stopped before it was finished");
    // Together; and one by one where the table refuses one of them, so that only that one waits for its lease to expire.
    const released = await Promise.allSettled(abandoned.map((job) => settleTogether({ job, outcome })));
    const errors = new Set(released.flatMap((each) => (each.status === "rejected" ? [each.reason] : [])));
    for (const error of errors) onError("release", error);
  }

  return {
    get size() {
      return held.size;
    },
    begin,
    renew,
    abandon,
    drained,
  };
}

/** A Problem will be refused the same way tomorrow, so it is dead at once. Anything else may pass. */
function outcomeOfError(error: unknown, attempt: number, { backoff }: Pick<WorkerSettings, "backoff">): Outcome {
  if (error instanceof Problem) return dead(`${error.code}: ${error.message}`);
  return retry(backoffMs(attempt, backoff), describeError(error));
}

/** The error and its causes in one line, for last_error. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `; because ${describeError(error.cause)}`;
  return `${error.name}: ${error.message}${cause}`;
}

function lastTry(outcome: JobOutcome, job: Claimed<object>, { attemptsMax }: WorkerSettings): JobOutcome {
  if (outcome.kind !== "retry" || job.claim.attempt < attemptsMax) return outcome;
  return dead(`gave up after ${job.claim.attempt} attempts: ${outcome.why}`);
}

/** Claimed once too often: nobody who had it before lived to say what became of it. */
function gaveUp(job: Claimed<object>): Outcome {
  return dead(
    `gave up after ${job.claim.attempt - 1} attempts: the last ended without an outcome (a crash or a stall)`,
  );
}
