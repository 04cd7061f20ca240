/**
 * The user inbox as an endless stream, which reconnects where it stopped. Every notification arrives once, in order, if the
 * program continues from the last id that it handled.
 */
import { problemOf } from "./attempt.ts";
import { Problem } from "./errors.ts";
import { parseJson } from "./json.ts";
import { type Operation, type Params, requestBuilder } from "./operation.ts";
import type { Context } from "./options.ts";
import { pause } from "./pause.ts";
import { readEvents } from "./sse.ts";

/** live: connected. waiting: the connection was lost, and is tried again soon. ended: the stream is closed. */
export type StreamState = "live" | "waiting" | "ended";

export interface FollowOptions {
  /** The last id that was handled, or `last_event_id` of the list. Without it, only new notifications come. */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onState?: (state: StreamState) => void;
  /** The server no longer knows the id `after`: list the inbox to see what was missed. */
  readonly onReset?: () => void;
}

export interface StreamItem<Item> {
  /** Keep it when the item is handled, and give it as `after` to continue. */
  readonly id: string;
  readonly item: Item;
}

// The server sends a keep-alive every 15 s, so a stream that is silent for this long is broken.
const silenceMaxMs = 45_000;
// Short, so that a machine that slept notices soon after it wakes up.
const silenceCheckMs = 5_000;
const waitMaxMs = 30_000;
const defaultRetryMs = 1_000;

/** Ends when the signal is aborted. Throws a Problem that no further attempt can change, such as the end of the session. */
export async function* follow<Item>(
  operation: Operation,
  context: Context,
  params: Params,
  options: FollowOptions = {},
): AsyncGenerator<StreamItem<Item>, void, undefined> {
  const { signal, onReset } = options;
  const setState = stateReporter(options.onState);
  let { after } = options;
  let [failures, retryMs] = [0, defaultRetryMs];
  try {
    while (!signal?.aborted) {
      let serverWaitMs = 0;
      try {
        const query = after === undefined ? params : { ...params, last_event_id: after };
        const build = requestBuilder(operation, context, { params: query });
        for await (const { event, data, id, retryMs: wanted } of openStream(build, context, signal)) {
          setState("live");
          failures = 0;
          retryMs = wanted ?? retryMs;
          after = id ?? after;
          if (event === "reset") onReset?.();
          if (event === "notification" && data !== undefined && id !== undefined)
            yield { id, item: parseJson(data) as Item };
        }
      } catch (error) {
        if (error instanceof Problem && !isTransient(error)) throw error;
        // An integer that this engine cannot read: its notification must not be skipped.
        if (error instanceof RangeError) throw error;
        serverWaitMs = error instanceof Problem ? (error.retryAfterMs ?? 0) : 0;
      }
      if (signal?.aborted) return;
      setState("waiting");
      const backoffMs = Math.min(waitMaxMs, retryMs * 2 ** failures++) * (0.5 + Math.random() / 2);
      await pauseUntilOnline(Math.max(serverWaitMs, backoffMs), signal);
    }
  } finally {
    setState("ended");
  }
}

function stateReporter(onState: FollowOptions["onState"]): (state: StreamState) => void {
  let reported: StreamState | undefined;
  return (state) => {
    if (state !== reported) onState?.(state);
    reported = state;
  };
}

const isTransient = ({ status }: Problem): boolean => status === 408 || status === 429 || status >= 500;

/** One connection. It is closed when the reader stops, too. */
async function* openStream(build: (signal: AbortSignal) => Request, context: Context, signal: AbortSignal | undefined) {
  const stop = new AbortController();
  const close = () => stop.abort();
  // A slow reader is not silence, so the time counts only while a chunk is awaited.
  let silentSince = Date.now();
  const watch = setInterval(() => Date.now() - silentSince > silenceMaxMs && close(), silenceCheckMs);
  const forgetOnline = onOnline(close);
  signal?.addEventListener("abort", close, { once: true });

  async function* read(body: ReadableStream<Uint8Array>) {
    const reader = body.getReader();
    for (;;) {
      silentSince = Date.now();
      const { done, value } = await reader.read();
      silentSince = Number.POSITIVE_INFINITY;
      if (done) return;
      yield value;
    }
  }

  try {
    const response = await context.fetch(build(stop.signal));
    if (!response.ok) throw problemOf(response, await response.text());
    if (!response.headers.get("content-type")?.startsWith("text/event-stream") || !response.body)
      throw new Error("the answer is not a stream of events");
    yield* readEvents(read(response.body));
  } finally {
    clearInterval(watch);
    forgetOnline();
    signal?.removeEventListener("abort", close);
    close();
  }
}

/** Browsers only. A connection from before the browser was offline is dead, often without an error. */
function onOnline(listener: () => void): () => void {
  const { addEventListener, removeEventListener } = globalThis as Partial<EventTarget>;
  addEventListener?.call(globalThis, "online", listener);
  return () => removeEventListener?.call(globalThis, "online", listener);
}

async function pauseUntilOnline(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const wake = new AbortController();
  const end = () => wake.abort();
  const forgetOnline = onOnline(end);
  signal?.addEventListener("abort", end, { once: true });
  await pause(ms, wake.signal).catch(() => {});
  signal?.removeEventListener("abort", end);
  forgetOnline();
}
