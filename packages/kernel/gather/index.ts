/**
 * Group commit: requests that arrive while a statement runs are carried out together by the next one.
 *
 * There is no timer and nothing waits when the lane is idle. Each caller gets its own answer or its own error. Requests
 * that touch the same thing (a row, an idempotency key) never share a batch and are carried out in the order in which
 * they came. One bad request fails alone: a batch that fails is run again request by request. Past `waitingMax` callers
 * the next one is refused at once, so that a slow database makes callers back off instead of filling the memory.
 */
import { CommitUnknown, isUnavailable, sqlStateOf } from "../db/errors.ts";
import { problem } from "../problem/index.ts";

export interface GatherOptions<Request, Answer> {
  /**
   * Carries out the requests in one commit and answers each in its place; an Error in a place fails that request only.
   * When it throws, nothing of the batch may have taken effect (CommitUnknown excepted).
   */
  readonly run: (requests: readonly Request[]) => Promise<readonly (Answer | Error)[]>;
  /** What a request reads and writes, as names: "user:u_1/item1", "key:abc". */
  readonly touches?: (request: Request) => readonly string[];
  readonly batchMax?: number;
  /** Statements in flight at once. One is best up to some 256 callers: a second only splits the batches. */
  readonly lanes?: number;
  readonly waitingMax?: number;
}

export const overloaded = problem({ code: "overloaded", status: 503, title: "Too many requests are waiting" });

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly touches: ReadonlySet<string>;
  readonly answer: (answer: Answer) => void;
  readonly fail: (error: unknown) => void;
  /** How many of the things it touches are held by requests before it. */
  behind: number;
}

const touchesNothing: ReadonlySet<string> = new Set();

export function gather<Request, Answer>(options: GatherOptions<Request, Answer>) {
  const { run, touches, batchMax = 100, lanes = 1, waitingMax = 10_000 } = options;
  type Entry = Waiting<Request, Answer>;
  /** For each thing that is touched, those who touch it, in order of arrival; only the first may run. */
  const lines = new Map<string, Entry[]>();
  let ready: Entry[] = [];
  let waiting = 0;
  let lanesBusy = 0;
  let scheduled = false;

  function submit(request: Request): Promise<Answer> {
    if (waiting >= waitingMax) {
      return Promise.reject(overloaded(`${waiting} requests are waiting already`, { retryAfterSeconds: 1 }));
    }
    waiting++;
    return new Promise<Answer>((answer, fail) => {
      const touched = touches ? new Set(touches(request)) : touchesNothing;
      const entry: Entry = { request, touches: touched, answer, fail, behind: 0 };
      for (const thing of touched) queueUp(thing, entry);
      if (entry.behind === 0) ready.push(entry);
      schedule();
    });
  }

  function queueUp(thing: string, entry: Entry): void {
    const line = lines.get(thing);
    if (!line) return void lines.set(thing, [entry]);
    line.push(entry);
    entry.behind++;
  }

  /** At the end of the current turn of the event loop, so that all requests read from the sockets by then go along. */
  function schedule(): void {
    if (scheduled || lanesBusy === lanes) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      pump();
    });
  }

  function pump(): void {
    while (lanesBusy < lanes && ready.length > 0) {
      const batch = ready.slice(0, batchMax);
      ready = ready.slice(batchMax);
      lanesBusy++;
      void carryOut(batch).finally(() => {
        lanesBusy--;
        pump();
      });
    }
  }

  async function carryOut(batch: readonly Entry[]): Promise<void> {
    try {
      const answers = await run(batch.map((entry) => entry.request));
      for (const [place, entry] of batch.entries()) settle(entry, answers[place]);
    } catch (error) {
      if (mayBeRunAgain(error)) for (const entry of batch) await carryOutAlone(entry);
      else for (const entry of batch) settle(entry, error as Error);
    }
  }

  async function carryOutAlone(entry: Entry): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        const [answer] = await run([entry.request]);
        return settle(entry, answer);
      } catch (error) {
        if (tries < aloneTriesMax && lostToAnotherProcess(error)) continue;
        return settle(entry, error as Error);
      }
    }
  }

  function settle(entry: Entry, answer: Answer | Error | undefined): void {
    waiting--;
    for (const thing of entry.touches) leave(thing);
    if (answer instanceof Error) entry.fail(answer);
    else if (answer === undefined)
      entry.fail(new Error("gather: run returned fewer answers than it was given requests"));
    else entry.answer(answer);
  }

  function leave(thing: string): void {
    const line = lines.get(thing) as Entry[];
    line.shift();
    const next = line[0];
    if (!next) lines.delete(thing);
    else if (--next.behind === 0) ready.push(next);
  }

  return submit;
}

const aloneTriesMax = 3;

/** Not when it may have committed, and not when the database is away: then every one of them would wait in vain. */
function mayBeRunAgain(error: unknown): boolean {
  return !(error instanceof CommitUnknown) && !isUnavailable(error);
}

/** Another process wrote the same key a moment before us; run again, the statement sees its row. */
function lostToAnotherProcess(error: unknown): boolean {
  return sqlStateOf(error) === "23505";
}
