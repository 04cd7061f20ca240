/**
 * Retries a call if that is safe: with the same key and the same bytes, after a pause, until the deadline.
 *
 * A command has three outcomes. It succeeded; it was refused (`Problem`), so nothing happened; or it is unknown whether it
 * took effect (`OutcomeUnknown`), and a call with the same key finds out.
 */
import { type Attempt, attempt } from "./attempt.ts";
import { NoAnswer, OutcomeUnknown } from "./errors.ts";
import { keyOf, type Operation, type Params, requestBuilder } from "./operation.ts";
import type { CommandOptions, ConditionalOptions, Context } from "./options.ts";
import { pause } from "./pause.ts";

/** A result with its response. */
export interface Answer<Data> {
  readonly data: Data;
  /** For its status and headers; the body is read. */
  readonly response: Response;
  readonly attempts: number;
  /** The command was executed by an earlier request with this key. */
  readonly replayed: boolean;
}

type Failure = Exclude<Attempt, { kind: "success" }>;

const backoffMaxMs = 5_000;
/** A 500 is an error of the server that a retry seldom cures. */
const internalErrorsMax = 2;

export async function execute<Data>(
  operation: Operation,
  context: Context,
  params: Params = {},
  options: CommandOptions & ConditionalOptions = {},
): Promise<Answer<Data>> {
  const { signal, deadlineMs = context.deadlineMs, tryMs = context.tryMs, ifMatch } = options;
  const key = keyOf(operation, options);
  const build = requestBuilder(operation, context, { params, key, ifMatch });
  const endsAt = performance.now() + deadlineMs;
  const leftMs = () => endsAt - performance.now();
  let [mayHaveActed, internalErrors] = [false, 0];

  signal?.throwIfAborted();
  for (let attempts = 1; ; attempts++) {
    const timeoutMs = Math.max(1, Math.min(tryMs, leftMs()));
    const result = await attempt(build, { fetch: context.fetch, timeoutMs, signal, isText: operation.isText });
    if (result.kind === "success") {
      const { data, response } = result;
      const replayed = response.headers.get("idempotency-replayed") === "true";
      return { data: data as Data, response, attempts, replayed };
    }
    const end = (cause: unknown) => {
      if (mayHaveActed && !operation.isRead) return new OutcomeUnknown(operation.name, { key, attempts, cause });
      if (signal?.aborted) return signal.reason;
      return result.kind === "problem" ? result.problem : new NoAnswer(operation.name, { attempts, cause });
    };
    if (result.kind === "problem" && result.problem.status === 500) internalErrors++;
    mayHaveActed = !isDefinite(operation, result, mayHaveActed);
    const canRepeat = !signal?.aborted && internalErrors <= internalErrorsMax && isRetryable(operation, result);
    const waitMs = pauseMs(result, attempts, context.retryBaseMs);
    if (!canRepeat || waitMs >= leftMs()) throw end(causeOf(result));
    try {
      await pause(waitMs, signal);
    } catch (reason) {
      throw end(reason);
    }
  }
}

const causeOf = (failure: Failure): unknown => (failure.kind === "problem" ? failure.problem : failure.cause);

/** 503 with these codes means that nothing was changed; with any other, the request may have been executed. */
const nothingChanged: ReadonlySet<string> = new Set([
  "unavailable",
  "overloaded",
  "trading-halted",
  "reconciliation-failing",
]);

/**
 * Whether the call certainly had no effect. After a lost attempt only an answer that came after the look-up of the key proves
 * that: rejections for missing rights and for load come before it. Without a key the first attempt may have caused the
 * refusal: what it deleted is not found.
 */
function isDefinite({ hasKey }: Operation, failure: Failure, mayHaveActed: boolean): boolean {
  if (failure.kind === "lost") return false;
  const { status, code, retryAfterMs } = failure.problem;
  if (status === 409 && retryAfterMs !== undefined) return false;
  if (!mayHaveActed) return status < 500 || (status === 503 && nothingChanged.has(code));
  return hasKey && failure.isOurs && status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
}

/** Whether to send the request again. */
function isRetryable({ isRepeatable }: Operation, failure: Failure): boolean {
  if (failure.kind === "lost") return isRepeatable;
  const { status, code, retryAfterMs } = failure.problem;
  if (status === 408 || status === 429) return true; // It was not executed.
  if (!isRepeatable || code === "trading-halted") return false; // A person has to resume trading.
  if (status === 409 || status === 503) return retryAfterMs !== undefined;
  return status === 500 || status === 502 || status === 504;
}

/** Full jitter, so that clients that failed together do not retry together; never before the server's Retry-After. */
function pauseMs(failure: Failure, attempts: number, baseMs: number): number {
  const backoffMs = Math.random() * Math.min(backoffMaxMs, baseMs * 2 ** (attempts - 1));
  return (failure.kind === "problem" ? (failure.problem.retryAfterMs ?? 0) : 0) + backoffMs;
}
