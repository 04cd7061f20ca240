/**
 * Opens a stream of server-sent events at notification. It has a connection of its own and none of the places of ordinary
 * calls, for it lasts; how many there may be is the service's to say. Refused or failed, it is told like any other call.
 */
import { Problem } from "@todoke/kernel/problem";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { upstreamProblems } from "../problems.ts";
import { answerMaxBytes, NoAnswer } from "../upstreams/exchange.ts";
import { type Verdict, verdictOn, verdictOnSilence } from "../upstreams/verdict.ts";

export interface EventStreamWish {
  readonly url: URL;
  readonly token: string;
  readonly requestId: string;
  readonly lastEventId?: string;
  /** Ends it, whenever; and ended by us, when it does not begin in time. */
  readonly leave: AbortController;
  /** How long it may take to begin. */
  readonly timeoutMs?: number;
}

const asked = { name: "notification", problems: upstreamProblems.notification, repeatable: true } as const;

/** Throws a Problem that says what failed. */
export async function openEventStream(wish: EventStreamWish): Promise<AsyncIterable<Uint8Array>> {
  const { leave, timeoutMs = 2_000 } = wish;
  const patience = setTimeout(() => leave.abort(new NoAnswer("late", `no stream within ${timeoutMs} ms`)), timeoutMs);
  try {
    const answer = await ask(wish);
    const headers = Object.fromEntries(answer.headers);
    const isStream = answer.status === 200 && headers["content-type"] === "text/event-stream";
    if (isStream && answer.body) return answer.body;
    throw problemIn(verdictOn(asked, { status: answer.status, headers, body: await textOf(answer) }));
  } catch (error) {
    if (error instanceof Problem) throw error;
    const silence = error instanceof NoAnswer ? error : new NoAnswer("broken", "the stream failed", { cause: error });
    throw problemIn(verdictOnSilence(asked, silence));
  } finally {
    clearTimeout(patience);
  }
}

/** With our own headers and no others. */
function ask({ url, token, requestId, lastEventId, leave }: EventStreamWish): Promise<Response> {
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

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > answerMaxBytes) throw new NoAnswer("unreadable", `the answer is longer than ${answerMaxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** A success that is no stream of events is none. */
function problemIn(verdict: Verdict): Problem {
  if (verdict.result !== "ok") return verdict.problem;
  return upstreamProblems.notification.badGateway("notification: what it answered is no stream of events");
}
