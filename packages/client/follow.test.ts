import { expect, test, vi } from "vitest";
import { createClient, isProblem, type StreamState } from "./index.ts";
import { readEvents } from "./sse.ts";
import { fakeFetch, lost, problem, type Reply } from "./testing/fake-fetch.ts";

const item = (n: number) => ({ notification_id: `n_${n}`, event_type: "T", text: "Hello", occurred_at: "t" });
const frame = (n: number) => `id: ${n}.0\nevent: notification\ndata: ${JSON.stringify(item(n))}\n\n`;
const start = "retry: 1\nid: 0.0\n\n";

/** A stream that sends these texts, and then ends, breaks or stays open. */
const stream =
  (texts: readonly string[], end: "ends" | "breaks" | "stays" = "ends"): Reply =>
  ({ signal }) => {
    const parts = [...texts];
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
      pull(controller) {
        const part = parts.shift();
        if (part !== undefined) controller.enqueue(new TextEncoder().encode(part));
        else if (end === "ends") controller.close();
        else if (end === "breaks") controller.error(new TypeError("terminated"));
        else return new Promise(() => {});
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };

const setup = (...replies: readonly Reply[]) => {
  const { fetch, sent } = fakeFetch(...replies);
  const { inbox } = createClient({ gateway: "http://g.example", session: "tds_1", fetch });
  return { inbox, sent, positions: () => sent.map(({ url }) => new URL(url).searchParams.get("last_event_id")) };
};

test("a stream goes on where it was after a clean end, a cut and a refused connection", async () => {
  const { inbox, positions } = setup(
    stream([start, frame(1), frame(2)]),
    stream([frame(3), frame(4).slice(0, 20)], "breaks"),
    lost,
    problem(503, "unavailable", { "retry-after": "0" }),
    stream([frame(4), frame(5)], "stays"),
  );
  const states: StreamState[] = [];
  const seen: string[] = [];
  for await (const { id, item: each } of inbox.follow({ onState: (state) => states.push(state) })) {
    expect(each.notification_id).toBe(`n_${id.split(".")[0]}`);
    seen.push(id);
    if (id === "5.0") break;
  }
  expect(seen).toEqual(["1.0", "2.0", "3.0", "4.0", "5.0"]);
  expect(positions()).toEqual([null, "2.0", "3.0", "3.0", "3.0"]);
  expect(states).toEqual(["live", "waiting", "live", "waiting", "live", "ended"]);
});

test("a stream begins after a known id, and an id without a notification counts too", async () => {
  const { inbox, positions } = setup(stream([start]), stream([frame(1)], "stays"));
  for await (const _ of inbox.follow({ after: "9.9" })) break;
  expect(positions()).toEqual(["9.9", "0.0"]);
});

test("the end of the session ends the stream with its problem", async () => {
  for (const [status, code] of [
    [401, "unauthenticated"],
    [403, "ACCOUNT_INACTIVE"],
  ] as const) {
    const { inbox, sent } = setup(stream([start, frame(1)]), problem(status, code));
    const ids: string[] = [];
    const read = async () => {
      for await (const { id } of inbox.follow()) ids.push(id);
    };
    const error = await read().catch((cause) => cause);
    expect(isProblem(error) && error.code).toBe(code);
    expect([ids, sent.length]).toEqual([["1.0"], 2]);
  }
});

test("an abort ends the stream, also while it waits to connect again", async () => {
  for (const reply of [stream([start], "stays"), problem(503, "unavailable", { "retry-after": "60" })]) {
    const leave = new AbortController();
    const { inbox, sent } = setup(reply);
    const ended = Array.fromAsync(inbox.follow({ signal: leave.signal }));
    await expect.poll(() => sent.length).toBe(1);
    leave.abort();
    expect(await ended).toEqual([]);
  }
});

test("a reset is reported, because the position was forgotten", async () => {
  const { inbox } = setup(stream(["id: 7.0\nevent: reset\ndata: {}\n\n", frame(8)], "stays"));
  const onReset = vi.fn();
  for await (const { id } of inbox.follow({ after: "1.0", onReset })) {
    expect([id, onReset.mock.calls.length]).toEqual(["8.0", 1]);
    break;
  }
});

test("a stream that is silent for 45 s is replaced, and going online replaces it at once", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "clearTimeout", "clearInterval", "Date"] });
  const browser = new EventTarget();
  vi.stubGlobal("addEventListener", browser.addEventListener.bind(browser));
  vi.stubGlobal("removeEventListener", browser.removeEventListener.bind(browser));
  try {
    const { inbox, sent } = setup(stream([start], "stays"), stream([start], "stays"), stream([frame(1)], "stays"));
    const first = inbox.follow().next();
    await vi.advanceTimersByTimeAsync(44_000);
    expect(sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sent).toHaveLength(2);
    browser.dispatchEvent(new Event("online"));
    await vi.advanceTimersByTimeAsync(100);
    expect((await first).value?.id).toBe("1.0");
  } finally {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  }
});

test("events are read whole, however the bytes are cut", async () => {
  const text =
    ": keep-alive\n\nid: 1\nevent: a\ndata: é\ndata: 2\n\nid:2\r\ndata:x\r\n\r\nretry: 30\n\nid: 3\ndata: cut";
  const bytes = new TextEncoder().encode(text);
  for (let size = 1; size <= bytes.length; size++) {
    async function* chunks() {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    }
    const events = (await Array.fromAsync(readEvents(chunks()))).map(({ event, data, id, retryMs }) => [
      event,
      data,
      id,
      retryMs,
    ]);
    expect(events).toEqual([
      ["message", undefined, undefined, undefined],
      ["a", "é\n2", "1", undefined],
      ["message", "x", "2", undefined],
      ["message", undefined, undefined, 30],
    ]);
  }
});
