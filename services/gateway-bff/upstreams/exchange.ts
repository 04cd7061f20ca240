/**
 * One HTTP exchange with a service: an answer that has come whole, within its time and its size, or the reason why there is
 * none. Redirects are answers like any other: nobody is sent elsewhere with our token.
 */
import { isUtf8 } from "node:buffer";
import type { Dispatcher, Pool } from "undici";

export interface Wish {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** With its query, percent-encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** For all of it: connecting, sending, waiting, and the last byte of the answer. */
  readonly timeoutMs: number;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** `late`: the time was over. `broken`: the connection failed. `unreadable`: what came cannot be an answer of ours. */
type Why = "late" | "broken" | "unreadable";

export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
  readonly why: Why;

  constructor(why: Why, message: string, options?: ErrorOptions) {
    super(message, options);
    this.why = why;
  }
}

/** A page of a thousand entries has some 200 kB; a service that sends more than this is not well. */
export const answerMaxBytes = 1024 * 1024;

/** Rejects with NoAnswer only. */
export function exchange(pool: Pick<Pool, "dispatch">, { timeoutMs, ...request }: Wish): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    let over = false;
    let sending: Dispatcher.DispatchController | undefined;
    let head: Pick<RawAnswer, "status" | "headers"> = { status: 0, headers: {} };
    const chunks: Buffer[] = [];
    let bytes = 0;

    function end(settle: () => void): void {
      if (over) return;
      over = true;
      clearTimeout(deadline);
      settle();
    }
    const fail = (error: NoAnswer) =>
      end(() => {
        reject(error);
        sending?.abort(error);
      });
    // Ours rather than undici's: it bounds the whole, and holds while there is no connection yet too.
    const deadline = setTimeout(() => fail(new NoAnswer("late", `no answer within ${timeoutMs} ms`)), timeoutMs);

    pool.dispatch(
      { ...request, body: request.body ?? null, headers: { ...request.headers } },
      {
        onRequestStart(controller) {
          sending = controller;
          // The connection came too late: nobody waits for an answer any more.
          if (over) controller.abort(new NoAnswer("late", "the time was over before it was sent"));
        },
        onResponseStart(_controller, status, headers) {
          head = { status, headers };
        },
        onResponseData(_controller, chunk) {
          bytes += chunk.length;
          if (bytes <= answerMaxBytes) chunks.push(chunk);
          else fail(new NoAnswer("unreadable", `the answer is longer than ${answerMaxBytes} bytes`));
        },
        onResponseEnd() {
          const body = Buffer.concat(chunks, bytes);
          if (!isUtf8(body)) return fail(new NoAnswer("unreadable", "the answer is not UTF-8"));
          end(() => resolve({ ...head, body: body.toString() }));
        },
        onResponseError(_controller, cause) {
          fail(new NoAnswer("broken", "the connection failed", { cause }));
        },
      },
    );
  });
}
