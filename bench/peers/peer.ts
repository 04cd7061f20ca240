/**
 * What is asked of every contender, ours among them, in the same words: each is one file that says how it is set up at
 * its best, and what it does not promise.
 */
import type { Queryable } from "@todoke/kernel/db";

/** What a job carries: its number, and when it was sent, in milliseconds of the machine's clock (see `machineMs`). */
export interface Job {
  readonly n: number;
  readonly sentAt: number;
}

/** Begins a job; the promise ends it. */
export type Handle = (job: Job) => void | Promise<void>;

export interface Peer extends AsyncDisposable {
  /** Enqueues within the caller's transaction. Missing where that cannot be. */
  readonly enqueue?: (tx: Queryable, job: Job) => Promise<unknown>;
  /** Enqueues one job by itself; resolves when it is durable. */
  send(job: Job): Promise<unknown>;
  /** Enqueues many, by the fastest way it has. */
  fill(count: number): Promise<unknown>;
  /** Starts a worker. Resolves when it would hear of a job; disposing it may drop what runs. */
  work(handle: Handle): Promise<AsyncDisposable>;
  /** Jobs that are not finished. */
  left(): Promise<number>;
  /** What it takes on disk (or, where it lives there, in memory). */
  bytes(): Promise<number>;
}

export interface Site {
  /** A database of its own, on the server that all share. */
  readonly postgresUrl: string;
  readonly redisUrl: string;
  /** How its dead workers are found, where that can be set. */
  readonly recovery?: Recovery;
}

/** "default" is as it comes; "short" the shortest that it allows or recommends. */
export type Recovery = "default" | "short";

export interface Contender {
  /** The npm package, where it is somebody else's. */
  readonly package?: string;
  /** Its settings here, in a sentence; all else is as it comes. */
  readonly settings: string;
  /** What it does not promise, in a sentence. */
  readonly lacks: string;
  /** How each kind of recovery is set; "never" where a dead worker's jobs are not given back within an hour. */
  readonly recovery: Readonly<Partial<Record<Recovery, string>>> & { readonly never?: string };
  /** Past some thousand jobs a second a round has 100 thousand; one that is far slower gets fewer, and this says so. */
  readonly slow?: boolean;
  /** Its jobs are not in PostgreSQL, so that an open transaction is nothing to it. */
  readonly elsewhere?: boolean;
  open(site: Site): Promise<Peer>;
}

/** Milliseconds of a clock that all processes of this machine share. */
export const machineMs = () => Number(process.hrtime.bigint()) / 1e6;

export const noJob: Job = { n: 0, sentAt: 0 };
