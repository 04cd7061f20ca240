/**
 * A batcher: requests that arrive while a statement runs are executed together by the next one. For writes this is group
 * commit.
 *
 * There is no timer, and an idle batcher starts at once. Each caller gets its own result or its own error. Requests with a
 * common conflict key (a row, an idempotency key) never share a batch and run in order of arrival. If a batch fails, its
 * requests run again one by one, so that a bad request fails alone. With `queueMax` requests waiting, further ones are
 * rejected at once: callers back off instead of filling the memory while the database is slow.
 */
import { CommitUnknown, getSqlState, isUnavailable } from "../db/errors.ts";
import { problem } from "../problem/index.ts";

export interface BatcherOptions<Request, Result> {
  /**
   * Executes the requests in one commit and returns their results in input order; an Error fails its request only. If it
   * throws, no request of the batch may have taken effect (except with CommitUnknown).
   */
  readonly run: (requests: readonly Request[]) => Promise<readonly (Result | Error)[]>;
  /** Names of what a request reads and writes: "user:u_1/item1", "key:abc". */
  readonly conflictKeys?: (request: Request) => readonly string[];
  readonly batchMax?: number;
  /** Statements that run at once. One is best up to about 256 callers: a second only splits the batches. */
  readonly concurrency?: number;
  /** The most requests that may wait, running ones included. */
  readonly queueMax?: number;
}

export const overloaded = problem(503, "overloaded", "Too many requests are waiting");

interface Entry<Request, Result> {
  readonly request: Request;
  readonly conflictKeys: ReadonlySet<string>;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** How many of its conflict keys earlier requests have. */
  blockedBy: number;
}

const noKeys: ReadonlySet<string> = new Set();

/** Creates a batcher. Returns the function that submits a request. */
export function createBatcher<Request, Result>(options: BatcherOptions<Request, Result>) {
  const { run, conflictKeys: conflictKeysOf, batchMax = 100, concurrency = 1, queueMax = 10_000 } = options;
  type Submitted = Entry<Request, Result>;
  /** The requests of each conflict key in order of arrival; only the first may run. */
  const queues = new Map<string, Submitted[]>();
  let ready: Submitted[] = [];
  let waiting = 0;
  let running = 0;
  let scheduled = false;

  function submit(request: Request): Promise<Result> {
    if (waiting >= queueMax) {
      return Promise.reject(overloaded(`${waiting} requests are waiting already`, { retryAfterSeconds: 1 }));
    }
    waiting++;
    return new Promise<Result>((resolve, reject) => {
      const conflictKeys = conflictKeysOf ? new Set(conflictKeysOf(request)) : noKeys;
      const entry: Submitted = { request, conflictKeys, resolve, reject, blockedBy: 0 };
      for (const key of conflictKeys) enqueue(key, entry);
      if (entry.blockedBy === 0) ready.push(entry);
      schedule();
    });
  }

  function enqueue(key: string, entry: Submitted): void {
    const queue = queues.get(key);
    if (!queue) return void queues.set(key, [entry]);
    queue.push(entry);
    entry.blockedBy++;
  }

  /** After the current turn of the event loop, so that all requests read from sockets in it share the batch. */
  function schedule(): void {
    if (scheduled || running === concurrency) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      startBatches();
    });
  }

  function startBatches(): void {
    while (running < concurrency && ready.length > 0) {
      const batch = ready.slice(0, batchMax);
      ready = ready.slice(batchMax);
      running++;
      void runBatch(batch).finally(() => {
        running--;
        startBatches();
      });
    }
  }

  async function runBatch(batch: readonly Submitted[]): Promise<void> {
    try {
      const results = await run(batch.map((entry) => entry.request));
      for (const [index, entry] of batch.entries()) finish(entry, results[index]);
    } catch (error) {
      if (canRunAgain(error)) for (const entry of batch) await runOne(entry);
      else for (const entry of batch) finish(entry, error as Error);
    }
  }

  async function runOne(entry: Submitted): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      try {
        const [result] = await run([entry.request]);
        return finish(entry, result);
      } catch (error) {
        if (attempts < attemptsAloneMax && isUniqueViolation(error)) continue;
        return finish(entry, error as Error);
      }
    }
  }

  function finish(entry: Submitted, result: Result | Error | undefined): void {
    waiting--;
    for (const key of entry.conflictKeys) dequeue(key);
    if (result instanceof Error) entry.reject(result);
    else if (result === undefined) entry.reject(new Error("batcher: run returned fewer results than requests"));
    else entry.resolve(result);
  }

  function dequeue(key: string): void {
    const queue = queues.get(key) as Submitted[];
    queue.shift();
    const next = queue[0];
    if (!next) queues.delete(key);
    else if (--next.blockedBy === 0) ready.push(next);
  }

  return submit;
}

const attemptsAloneMax = 3;

/** Not if the batch may have committed, and not if the database is unavailable: then every request would time out. */
function canRunAgain(error: unknown): boolean {
  return !(error instanceof CommitUnknown) && !isUnavailable(error);
}

/** Another process has just inserted the same key. Run again, the statement sees its row. */
function isUniqueViolation(error: unknown): boolean {
  return getSqlState(error) === "23505";
}
