/**
 * Tells windows of the console what has changed. One loop of the process asks all services once a second, however many windows there
 * are, and not at all while there is none.
 *
 * A window is ready once there is a digest of each of its topics, and reads its pages then. A change that the pages do not have differs
 * from that digest, so the next pass finds it: nothing is missed in between.
 */
import { type Loop, startLoop } from "@todoke/kernel/worker";
import type { ReadTopics, WatchedTopics } from "./read-changes.ts";

interface Window {
  readonly ids: readonly string[];
  readonly user: NonNullable<WatchedTopics["matchmakingFor"]>;
  readonly watchesMatchmaking: boolean;
  readonly onReady: () => void;
  /** Called once a second at most. */
  readonly onChanged: (topics: readonly string[]) => void;
}

export interface Watcher extends AsyncDisposable {
  /** Returns a function with which it leaves. */
  join(window: Window): () => void;
}

export interface WatcherOptions {
  readonly read: ReadTopics;
  readonly intervalMs: number;
  readonly onError: (error: unknown) => void;
}

const sharedTopics = ["overview", "dead-letters", "batches", "audit-log"];

const topicsOf = ({ ids, watchesMatchmaking }: Window): string[] => [
  ...sharedTopics,
  ...ids.map((id) => `id:${id}`),
  ...(watchesMatchmaking ? ["matchmaking"] : []),
];

export function watchChanges({ read, intervalMs, onError }: WatcherOptions): Watcher {
  const windows = new Map<Window, { isReady: boolean }>();
  let known = new Map<string, string>();

  async function pass(_stopping: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    nextIn(intervalMs);
    // Windows that join during the pass are in the next one.
    const now = [...windows];
    if (now.length === 0) {
      known = new Map();
      nextIn(Number.POSITIVE_INFINITY);
      return;
    }
    const found = await read(toWatched(now.map(([window]) => window)));
    const changed = [...found].filter(([topic, digest]) => known.get(topic) !== digest).map(([topic]) => topic);
    known = found;
    for (const [window, state] of now) notify(window, state, changed);
  }

  function notify(window: Window, state: { isReady: boolean }, changed: readonly string[]): void {
    if (!windows.has(window)) return;
    if (!state.isReady) {
      state.isReady = true;
      window.onReady();
      return;
    }
    const its = topicsOf(window).filter((topic) => changed.includes(topic));
    if (its.length > 0) window.onChanged(its);
  }

  // A pause after every pass, because windows that come and go wake the loop.
  const pauseMs = () => Math.min(200, intervalMs);
  const loop: Loop = startLoop(pass, { intervalMs, pauseMs, task: "watching for changes", onError });
  return {
    join(window) {
      windows.set(window, { isReady: false });
      loop.wake();
      return () => void windows.delete(window);
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}

const toWatched = (windows: readonly Window[]): WatchedTopics => ({
  ids: [...new Set(windows.flatMap(({ ids }) => ids))],
  matchmakingFor: windows.find(({ watchesMatchmaking }) => watchesMatchmaking)?.user,
});
