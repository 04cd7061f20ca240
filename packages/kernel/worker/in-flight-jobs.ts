/**
 * The claimed jobs of one worker: runs them, renews their leases, and settles each as soon as it has finished, batched with
 * all others that have finished by then.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createBatcher } from "../batcher/index.ts";
import type { Claimed, Claims } from "../claims/index.ts";
import type { Db } from "../db/index.ts";
import { Problem } from "../problem/index.ts";
import { count } from "../telemetry/index.ts";
import { backoffMs } from "./backoff.ts";
import { describeError } from "./describe-error.ts";
import type { Leases, WorkerSettings } from "./index.ts";
import { dead, type JobOutcome, type Outcome, release, retry } from "./outcome.ts";
import { withTimeout } from "./with-timeout.ts";

export type JobResult = JobOutcome["kind"] | "leaseLost";

export interface InFlightOptions<Row extends object> {
  readonly name: string;
  readonly db: Db;
  readonly claims: Claims<Row>;
  readonly run: (jobs: readonly Claimed<Row>[], leases: Leases) => readonly Promise<JobOutcome>[];
  readonly settings: WorkerSettings;
  readonly onError: (step: string, error: unknown) => void;
  readonly onDead: (job: Claimed<Row>, reason: string) => void;
  /** Called when a job is settled or its lease lost; with the delay before its next attempt, if there is one. */
  readonly onFinished: (delayMs: number | undefined) => void;
  readonly pause: (ms: number) => void;
}

export interface InFlightJobs<Row extends object> {
  readonly size: number;
  /** Starts the jobs. The promises resolve to their results and never reject. */
  begin(jobs: readonly Claimed<Row>[]): Promise<JobResult>[];
  renew(): Promise<void>;
  /** Aborts all jobs and releases those that have not finished after `graceMs`. */
  abandon(graceMs: number): Promise<void>;
  /** Resolves when no job is running, or after `ms`. */
  drained(ms: number): Promise<void>;
}

export function trackInFlightJobs<Row extends object>(options: InFlightOptions<Row>): InFlightJobs<Row> {
  const { name, db, claims, run, settings, onError, onDead, onFinished, pause } = options;
  type Job = Claimed<Row>;
  interface InFlight {
    readonly abort: AbortController;
    /** The end by this process' clock. After it, only the fence decides. */
    leaseEndsAt: number;
    readonly result: Promise<JobResult>;
  }
  const inFlight = new Map<Job, InFlight>();

  const settleBatched = createBatcher<{ job: Job; outcome: Outcome }, { applied: boolean }>({
    batchMax: 1_000,
    queueMax: Number.POSITIVE_INFINITY, // `concurrency` is the bound: only jobs in flight are settled.
    run: async (finished) => {
      const applied = await claims.settle(
        db,
        finished.map(({ job, outcome }) => ({ claim: job.claim, outcome })),
      );
      return applied.map((each) => ({ applied: each }));
    },
  });

  function begin(jobs: readonly Job[]): Promise<JobResult>[] {
    const aborts = new Map<Claimed<object>, AbortController>(jobs.map((job) => [job, new AbortController()]));
    const abortOf = (job: Claimed<object>) => aborts.get(job) as AbortController;
    const runnable = jobs.filter((job) => job.claim.attempt <= settings.attemptsMax);
    const running = start(runnable, { of: (job) => ({ signal: abortOf(job).signal, pause: pause }), pause: pause });
    const outcomes = new Map(runnable.map((job, index) => [job, running[index]]));
    return jobs.map((job) => {
      const result = finish(job, outcomes.get(job) ?? Promise.resolve(attemptsExceeded(job)));
      inFlight.set(job, { abort: abortOf(job), leaseEndsAt: performance.now() + settings.leaseMs, result });
      return result;
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

  async function finish(job: Job, running: Promise<JobOutcome>): Promise<JobResult> {
    const reported = await running.catch((error) => toOutcome(error, job.claim.attempt, settings));
    const outcome = limitAttempts(reported, job, settings);
    const applied = outcome.kind === "settled" ? outcome.applied : inFlight.has(job) && (await settle(job, outcome));
    inFlight.delete(job);
    count("todoke.worker.jobs", { worker: name, outcome: applied ? outcome.kind : "lease_lost" });
    if (applied && outcome.kind === "dead") onDead(job, outcome.reason);
    onFinished("delayMs" in outcome ? outcome.delayMs : undefined);
    return applied ? outcome.kind : "leaseLost";
  }

  /** Retries a settlement that cannot reach the database for as long as the lease may still be ours. */
  async function settle(job: Job, outcome: Outcome): Promise<boolean> {
    for (;;) {
      try {
        return (await settleBatched({ job, outcome })).applied;
      } catch (error) {
        onError("settle", error);
        const leaseEndsAt = inFlight.get(job)?.leaseEndsAt ?? 0;
        if (performance.now() > leaseEndsAt) return false;
        await sleep(100 + Math.random() * 200);
      }
    }
  }

  async function renew(): Promise<void> {
    const jobs = [...inFlight.keys()];
    const requestedAt = performance.now();
    const renewed = await claims.renew(
      db,
      jobs.map((job) => job.claim),
      settings.leaseMs,
    );
    jobs.forEach((job, index) => {
      const current = inFlight.get(job);
      if (!current) return; // It has finished during the renewal.
      if (renewed[index]) current.leaseEndsAt = requestedAt + settings.leaseMs;
      else current.abort.abort(new Error("the lease was lost: another worker has claimed this job"));
    });
  }

  async function drained(ms: number): Promise<void> {
    const finished = Promise.all([...inFlight.values()].map(({ result }) => result));
    await withTimeout(ms, finished).catch(() => {});
  }

  async function abandon(graceMs: number): Promise<void> {
    for (const { abort } of inFlight.values()) abort.abort(new Error("the worker is stopping"));
    await drained(graceMs);
    const abandoned = [...inFlight.keys()];
    for (const job of abandoned) inFlight.delete(job); // From here on the outcomes of these jobs are ignored.
    const outcome = release("the worker stopped before the job had finished");
    // Batched. If the table rejects one of them, the batcher releases them one by one, and only that one keeps its lease.
    const released = await Promise.allSettled(abandoned.map((job) => settleBatched({ job, outcome })));
    const errors = new Set(released.flatMap((each) => (each.status === "rejected" ? [each.reason] : [])));
    for (const error of errors) onError("release", error);
  }

  return {
    get size() {
      return inFlight.size;
    },
    begin,
    renew,
    abandon,
    drained,
  };
}

/** A Problem is permanent, so the job is dead at once. Any other error is retried. */
function toOutcome(error: unknown, attempt: number, { backoff }: Pick<WorkerSettings, "backoff">): Outcome {
  if (error instanceof Problem) return dead(`${error.code}: ${error.message}`);
  return retry(backoffMs(attempt, backoff), describeError(error));
}

function limitAttempts(outcome: JobOutcome, job: Claimed<object>, { attemptsMax }: WorkerSettings): JobOutcome {
  if (outcome.kind !== "retry" || job.claim.attempt < attemptsMax) return outcome;
  return dead(`failed after ${job.claim.attempt} attempts: ${outcome.reason}`);
}

/** The attempt limit is exceeded: every earlier worker crashed or stalled before it settled the job. */
const attemptsExceeded = (job: Claimed<object>): Outcome => dead(noOutcome(job.claim.attempt - 1));

export const noOutcome = (attempts: number): string =>
  `failed after ${attempts} attempts: the last one ended without an outcome (a crash or a stall)`;
