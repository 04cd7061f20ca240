/**
 * Opens a stream of server-sent events at notification. It has a connection of its own and takes no slot of ordinary calls,
 * because it lasts; notification limits the number of streams. Refusals and failures are the same as those of a call.
 */
import { Problem } from "@todoke/kernel/problem";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { upstreamProblems } from "../problems.ts";
import { NoResponseError, responseMaxBytes } from "../upstreams/exchange.ts";
import { readBounded, TooLargeError } from "../upstreams/read-bounded.ts";
import { interpretFailure, interpretResponse, type UpstreamResult } from "../upstreams/result.ts";

export interface StreamRequest {
  readonly url: URL;
  readonly token: string;
  readonly requestId: string;
  readonly lastEventId?: string;
  /** Ends the stream. Aborted here if the stream does not start in time. */
  readonly leave: AbortController;
  /** How long the stream may take to start. */
  readonly timeoutMs?: number;
}

const context = { name: "notification", problems: upstreamProblems.notification, repeatable: true } as const;

/** Throws a Problem if the stream cannot be opened. */
export async function openStream(request: StreamRequest): Promise<AsyncIterable<Uint8Array>> {
  const { leave, timeoutMs = 2_000 } = request;
  const late = () => leave.abort(new NoResponseError("late", `no stream within ${timeoutMs} ms`));
  const timeout = setTimeout(late, timeoutMs);
  try {
    const { status, headers, body } = await send(request);
    if (status === 200 && headers.get("content-type") === "text/event-stream" && body) return body;
    const text = (await readBounded(body, responseMaxBytes)).toString();
    throw toProblem(interpretResponse(context, { status, headers: Object.fromEntries(headers), body: text }));
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw toProblem(interpretFailure(context, toNoResponse(error)));
  } finally {
    clearTimeout(timeout);
  }
}

/** Sends our own headers and no others. */
function send({ url, token, requestId, lastEventId, leave }: StreamRequest): Promise<Response> {
  const { traceparent } = traceHeaders();
  const headers = {
    accept: "text/event-stream",
    authorization: `Bearer ${token}`,
    "x-request-id": requestId,
    ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
    ...(traceparent !== undefined && { traceparent }),
  };
  return fetch(url, { headers, redirect: "manual", signal: leave.signal });
}

function toNoResponse(cause: unknown): NoResponseError {
  if (cause instanceof NoResponseError) return cause;
  return new NoResponseError(cause instanceof TooLargeError ? "unreadable" : "broken", "the stream failed", { cause });
}

/** A success that is not an event stream is a failure. */
function toProblem(result: UpstreamResult): Problem {
  if (result.outcome !== "ok") return result.problem;
  return upstreamProblems.notification.badGateway("notification: its response is not an event stream");
}
