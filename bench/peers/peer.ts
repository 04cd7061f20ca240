/** The interface of a contender. Each has a file with its best documented settings and what it does not guarantee. */
import type { Queryable } from "@todoke/kernel/db";

/** The payload of a job; `sentAt` is in milliseconds of `machineMs`. */
export interface Job {
  readonly n: number;
  readonly sentAt: number;
}

/** Runs a job, which is done when the promise resolves. */
export type Handle = (job: Job) => void | Promise<void>;

export interface Peer extends AsyncDisposable {
  /** Enqueues in the caller's transaction. Missing if the contender cannot. */
  readonly enqueue?: (tx: Queryable, job: Job) => Promise<unknown>;
  /** Enqueues one job; resolves when it is durable. */
  send(job: Job): Promise<unknown>;
  /** Enqueues many jobs in the fastest way that the contender has. */
  fill(count: number): Promise<unknown>;
  /** Starts a worker; resolves when it listens for jobs. Disposing it may drop running jobs. */
  work(handle: Handle): Promise<AsyncDisposable>;
  /** Jobs that are not finished. */
  countUnfinished(): Promise<number>;
  /** Bytes on disk, or in memory for Redis. */
  bytes(): Promise<number>;
}

export interface RoundSetup {
  /** A new database on the shared server. */
  readonly postgresUrl: string;
  readonly redisUrl: string;
  /** How fast dead workers are detected, if that is configurable. */
  readonly recovery?: Recovery;
}

/** "default" is the default setting; "short" the shortest that the contender allows or recommends. */
export type Recovery = "default" | "short";

export interface Contender {
  /** The npm package of a peer. */
  readonly package?: string;
  /** Settings that differ from the defaults. */
  readonly settings: string;
  /** What it does not guarantee. */
  readonly notGuaranteed: string;
  /** The settings of each kind of recovery; "never" if a dead worker's jobs are not recovered within an hour. */
  readonly recovery: Readonly<Partial<Record<Recovery, string>>> & { readonly never?: string };
  /** Gets fewer jobs per round, because it is far slower than the others. */
  readonly slow?: boolean;
  /** Its jobs are not in PostgreSQL, so it cannot take part in transactions. */
  readonly outsidePostgres?: boolean;
  open(setup: RoundSetup): Promise<Peer>;
}

/** Milliseconds of a clock that all processes of this machine share. */
export const machineMs = () => Number(process.hrtime.bigint()) / 1e6;

export const warmUpJob: Job = { n: 0, sentAt: 0 };
