/** One attempt of a call: a request, and its answer with the whole body. */
import { Problem, type ProblemFields } from "./errors.ts";
import { parseJson } from "./json.ts";
import type { Fetch } from "./options.ts";

export type Attempt =
  | { readonly kind: "success"; readonly data: unknown; readonly response: Response }
  | { readonly kind: "problem"; readonly problem: Problem; readonly isOurs: boolean }
  /** No complete answer: the connection was refused or lost, or the attempt took too long. */
  | { readonly kind: "lost"; readonly cause: unknown };

export interface AttemptOptions {
  readonly fetch: Fetch;
  /** Bounds the attempt with its body. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly isText: boolean;
}

/** Only what the network does counts as lost: a request that cannot be built is the caller's error and is thrown. */
export async function attempt(build: (signal: AbortSignal) => Request, options: AttemptOptions): Promise<Attempt> {
  const { fetch, timeoutMs, signal, isText } = options;
  const stop = new AbortController();
  const request = build(stop.signal);
  const onAbort = () => stop.abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const onTimeout = () => stop.abort(new DOMException(`no answer within ${Math.round(timeoutMs)} ms`, "TimeoutError"));
  const timer = setTimeout(onTimeout, timeoutMs);
  try {
    const response = await fetch(request);
    const text = await response.text();
    return response.ok
      ? success(response, text, isText)
      : { kind: "problem", problem: problemOf(response, text), isOurs: isOurs(response.headers) };
  } catch (cause) {
    if (cause instanceof RangeError) throw cause; // An integer that this engine cannot read; the next attempt could not either.
    return { kind: "lost", cause: stop.signal.aborted ? stop.signal.reason : cause };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** A body that is not JSON did not come from Todoke as a whole: it was cut, or a proxy wrote it. */
function success(response: Response, text: string, isText: boolean): Attempt {
  return { kind: "success", data: isText ? text : text === "" ? undefined : parseJson(text), response };
}

/** Converts a response that is not a success. */
export function problemOf({ status, statusText, headers }: Response, text: string): Problem {
  const fields = isOurs(headers) ? (JSON.parse(text) as ProblemFields) : foreign(status, statusText);
  return new Problem({ ...fields, status }, retryAfterMs(headers));
}

const isOurs = (headers: Headers): boolean =>
  headers.get("content-type")?.startsWith("application/problem+json") === true;

/** For a response of a proxy, or of another server at this address. */
const foreign = (status: number, statusText: string): ProblemFields => ({
  status,
  code: "not-from-todoke",
  title: statusText,
  detail: `the answer ${status} is not from Todoke`,
});

/** Seconds or a date. */
function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
