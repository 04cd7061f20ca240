/**
 * Tells clients that stay connected what their users are told, as it happens.
 *
 * Every stream knows how far its client is, and all are read for by one statement, however many there are. A wake-up after
 * a commit has it run at once, but no more than ten times a second and a fifth of the time; the poll is the guarantee. A
 * stream that is far behind catches up by the same statement, a page at a time, beside all others. No stream holds a
 * connection to the database, and what is read at once, waits for a client, or is open at all, is bounded.
 */
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { problems } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { Wakeups } from "@todoke/kernel/worker";
import { tooManyStreams } from "../problems.ts";
import { selectNew } from "../store/new-notifications.ts";
import { InboxStream, type StreamStart } from "../stream/inbox-stream.ts";
import { startPollLoop } from "./poll-loop.ts";

export interface InboxStreamsOptions {
  readonly db: Db;
  readonly wakeups: Wakeups;
  /** Signalled when notifications were committed. */
  readonly topic: string;
  readonly onError: (error: unknown) => void;
  /** Streams of this process. */
  readonly streamsMax?: number;
  /** How late news may be when every wake-up was lost. */
  readonly pollMs?: number;
  readonly beatMs?: number;
  /** A stream that is older has to come back: whether its client still may is asked when it does. */
  readonly ageMaxMs?: number;
}

export interface InboxStreams extends AsyncDisposable {
  /** Refuses when there are too many; `takeResponse` is called only when there are not. */
  follow(start: StreamStart, takeResponse: () => ServerResponse): void;
  /** How many streams are open. */
  readonly size: number;
}

const perUserMax = 5;
/** Rows read at once, for one stream and for all: some megabytes at the most. */
const pageMax = 100;
const rowsMax = 5_000;
/** How long clients may take to be told that a stop ends their stream. */
const farewellMs = 1_000;

export function openInboxStreams(options: InboxStreamsOptions): InboxStreams {
  const { db, wakeups, topic, onError } = options;
  const { streamsMax = 2_000, pollMs = 1_000, beatMs = 15_000, ageMaxMs = 15 * 60_000 } = options;
  const streams = new Set<InboxStream>();
  const rounds = startPollLoop({
    round,
    pollMs,
    onError: (cause) => onError(new Error("reading inboxes failed", { cause })),
  });
  const unsubscribe = wakeups.on(topic, rounds.ask);
  const beats = setInterval(() => {
    for (const stream of streams) stream.beat({ ageMaxMs });
  }, beatMs);
  beats.unref();
  let stopping = false;

  /** Reads what is new for all who have room for it. True when there is more to come at once. */
  async function round(): Promise<boolean> {
    const reading = [...streams].filter(({ hasRoom }) => hasRoom);
    if (reading.length === 0) return false;
    const each = Math.max(1, Math.min(pageMax, Math.floor(rowsMax / reading.length)));
    const news = await selectNew(db, reading, each);
    const settled = news.filter(({ isSettled }) => isSettled);
    for (const row of settled) reading[row.place]?.send(row);
    const isFull = settled.some(({ place }, at) => settled[at - each + 1]?.place === place);
    return isFull || settled.length < news.length;
  }

  function admit(userId: string): void {
    if (stopping || streams.size >= streamsMax) {
      throw problems.unavailable("there is no room for another stream here just now", { retryAfterSeconds: 1 });
    }
    const own = [...streams].filter((stream) => stream.userId === userId);
    if (own.length >= perUserMax) throw tooManyStreams(`a user has at most ${perUserMax} streams; close one`);
  }

  async function stop(): Promise<void> {
    stopping = true;
    unsubscribe();
    clearInterval(beats);
    await rounds.stop();
    const ended = [...streams].map((stream) => stream.end());
    await Promise.race([Promise.all(ended), sleep(farewellMs, undefined, { ref: false })]);
    for (const stream of streams) stream.cut();
  }

  return {
    follow(start, takeResponse) {
      admit(start.userId);
      const response = takeResponse();
      if (response.destroyed) return; // The client has gone meanwhile, and nobody will say so again.
      const stream = new InboxStream(start, response);
      streams.add(stream);
      void stream.closed.then(() => streams.delete(stream));
      rounds.ask();
    },
    get size() {
      return streams.size;
    },
    [Symbol.asyncDispose]: stop,
  };
}
