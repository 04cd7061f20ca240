/**
 * Streams new notifications to connected clients.
 *
 * One statement reads for all streams of the process, from the position of each. A wake-up after a commit runs it at once,
 * but at most ten times a second and for a fifth of the time; polling is the guarantee. A stream that is far behind catches
 * up by the same statement, a page at a time. No stream holds a database connection; the number of streams, the rows per
 * statement and the buffer per client are bounded.
 */
import type { ServerResponse } from "node:http";
import { problems } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { startLoop, type Wakeups, withTimeout } from "@todoke/kernel/worker";
import { tooManyStreams } from "../problems.ts";
import { selectNewNotifications } from "../store/new-notifications.ts";
import { InboxStream, type StreamStart } from "../stream/inbox-stream.ts";

export interface InboxStreamsOptions {
  readonly db: Db;
  readonly wakeups: Wakeups;
  /** Signalled when notifications were committed. */
  readonly topic: string;
  readonly onError: (error: unknown) => void;
  /** Streams of this process. */
  readonly streamsMax?: number;
  /** About the delay of a notification when every wake-up is lost. */
  readonly pollMs?: number;
  readonly heartbeatMs?: number;
  /** After this time the client has to reconnect, and its access is checked again. */
  readonly ageMaxMs?: number;
}

export interface InboxStreams extends AsyncDisposable {
  /** Throws a Problem if there are too many streams; `openResponse` is called only if there are not. */
  open(start: StreamStart, openResponse: () => ServerResponse): void;
  /** The number of open streams. */
  readonly size: number;
}

const perUserMax = 5;
/** Rows per statement, for one stream and for all: some megabytes at most. */
const pageMax = 100;
const rowsMax = 5_000;
/** A pass that takes long, because of much work or a busy database, is followed by a longer pause. */
const pauseMs = (tookMs: number) => Math.max(100, 4 * tookMs);
/** How long clients may take to read the end of their stream when the process stops. */
const endTimeoutMs = 1_000;

export function openInboxStreams(options: InboxStreamsOptions): InboxStreams {
  const { db, wakeups, topic, onError } = options;
  const { streamsMax = 2_000, pollMs = 1_000, heartbeatMs = 15_000, ageMaxMs = 15 * 60_000 } = options;
  const streams = new Set<InboxStream>();
  const task = "reading new notifications for streams";
  const loop = startLoop(sendNew, { intervalMs: pollMs, task, onError, pauseMs, wakeups, topic });
  const heartbeats = setInterval(() => {
    for (const stream of streams) stream.heartbeat({ ageMaxMs });
  }, heartbeatMs);
  heartbeats.unref();
  let stopping = false;

  /** Reads for all streams that have room. */
  async function sendNew(_: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    const reading = [...streams].filter(({ hasRoom }) => hasRoom);
    if (reading.length === 0) return;
    const limit = Math.max(1, Math.min(pageMax, Math.floor(rowsMax / reading.length)));
    const rows = await selectNewNotifications(db, reading, limit);
    const stable = rows.filter(({ isStable }) => isStable);
    for (const row of stable) reading[row.cursorIndex]?.send(row);
    const isPageFull = stable.some(({ cursorIndex }, at) => stable[at - limit + 1]?.cursorIndex === cursorIndex);
    if (isPageFull || stable.length < rows.length) nextIn(0);
  }

  function rejectIfFull(userId: string): void {
    if (stopping || streams.size >= streamsMax) {
      throw problems.unavailable("this process has no room for another stream", { retryAfterSeconds: 1 });
    }
    const own = [...streams].filter((stream) => stream.userId === userId);
    if (own.length >= perUserMax) throw tooManyStreams(`a user can have ${perUserMax} streams at most; close one`);
  }

  async function stop(): Promise<void> {
    stopping = true;
    clearInterval(heartbeats);
    await loop[Symbol.asyncDispose]();
    const ended = Promise.all([...streams].map((stream) => stream.end()));
    await withTimeout(endTimeoutMs, ended).catch(() => {});
    for (const stream of streams) stream.disconnect();
  }

  return {
    open(start, openResponse) {
      rejectIfFull(start.userId);
      const response = openResponse();
      if (response.destroyed) return; // The client has disconnected, and its "close" event has passed.
      const stream = new InboxStream(start, response);
      streams.add(stream);
      void stream.closed.then(() => streams.delete(stream));
      loop.wake();
    },
    get size() {
      return streams.size;
    },
    [Symbol.asyncDispose]: stop,
  };
}
