/** Reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), of any line ending. */

export interface ServerSentEvent {
  /** The type; "message" if there is none. */
  readonly event: string;
  /** Undefined if the frame has no data, as one that only sets the id. */
  readonly data: string | undefined;
  readonly id: string | undefined;
  readonly retryMs: number | undefined;
}

/** Longer than any frame of the gateway. */
const frameMax = 1_048_576;

/** Yields complete frames only: an incomplete frame at the end is dropped. A comment yields an empty frame. */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    // A chunk may end within "\r\n": then "\r" waits for the next chunk.
    rest = (rest + decoder.decode(chunk, { stream: true })).replace(/\r\n|\r(?!$)/g, "\n");
    const frames = rest.split("\n\n");
    rest = frames.pop() ?? "";
    if (rest.length > frameMax) throw new Error(`a server-sent event is longer than ${frameMax} characters`);
    for (const frame of frames) yield parseFrame(frame);
  }
}

function parseFrame(frame: string): ServerSentEvent {
  let [event, id, retryMs]: [string, string | undefined, number | undefined] = ["message", undefined, undefined];
  const data: string[] = [];
  for (const line of frame.split("\n")) {
    const [, field, value = ""] = /^([^:]+)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (field === "id") id = value;
    else if (field === "retry" && /^\d+$/.test(value)) retryMs = Number(value);
  }
  return { event, data: data.length > 0 ? data.join("\n") : undefined, id, retryMs };
}
