/**
 * One HTTP exchange with a service: a complete response within its time and size, or the reason why there is none.
 * Redirects are not followed, so that our token goes nowhere else.
 */
import { isUtf8 } from "node:buffer";
import type { Dispatcher, Pool } from "undici";

export interface UpstreamRequest {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** With its query, percent-encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** From connecting to the last byte of the response. */
  readonly timeoutMs: number;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** `late`: the timeout expired. `broken`: the connection failed. `unreadable`: the response is too long or not UTF-8. */
type Reason = "late" | "broken" | "unreadable";

export class NoResponseError extends Error {
  override readonly name = "NoResponseError";
  readonly reason: Reason;

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** A page of a thousand entries has about 200 kB, so a longer response is an error. */
export const responseMaxBytes = 1024 * 1024;

/** Rejects with NoResponseError only. */
export function exchange(pool: Pick<Pool, "dispatch">, request: UpstreamRequest): Promise<RawResponse> {
  const { timeoutMs, ...options } = request;
  return new Promise((resolve, reject) => {
    let isSettled = false;
    let sending: Dispatcher.DispatchController | undefined;
    let head: Pick<RawResponse, "status" | "headers"> = { status: 0, headers: {} };
    const chunks: Buffer[] = [];
    let bytes = 0;

    function end(settle: () => void): void {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(deadline);
      settle();
    }
    const fail = (error: NoResponseError) =>
      end(() => {
        reject(error);
        sending?.abort(error);
      });
    // Our own timer and not undici's: it bounds the whole exchange, also while there is no connection yet.
    const deadline = setTimeout(
      () => fail(new NoResponseError("late", `no response within ${timeoutMs} ms`)),
      timeoutMs,
    );

    pool.dispatch(
      { ...options, body: options.body ?? null, headers: { ...options.headers } },
      {
        onRequestStart(controller) {
          sending = controller;
          // The connection came after the timeout: send nothing.
          if (isSettled) controller.abort(new NoResponseError("late", "timed out before it was sent"));
        },
        onResponseStart(_controller, status, headers) {
          head = { status, headers };
        },
        onResponseData(_controller, chunk) {
          bytes += chunk.length;
          if (bytes <= responseMaxBytes) chunks.push(chunk);
          else fail(new NoResponseError("unreadable", `the response is longer than ${responseMaxBytes} bytes`));
        },
        onResponseEnd() {
          const body = Buffer.concat(chunks, bytes);
          if (!isUtf8(body)) return fail(new NoResponseError("unreadable", "the response is not UTF-8"));
          end(() => resolve({ ...head, body: body.toString() }));
        },
        onResponseError(_controller, cause) {
          fail(new NoResponseError("broken", "the connection failed", { cause }));
        },
      },
    );
  });
}
