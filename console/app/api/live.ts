/**
 * Follows changes while the window is visible: one stream of the gateway says which topics have changed, and the reads that show them are
 * repeated at once. While the stream is lost, every read polls. An operator may pause it.
 */
import type { QueryClient } from "@tanstack/preact-query";
import { createStore } from "./store.ts";

/** "overview", "dead-letters", "batches", "audit-log", "matchmaking", or "id:…". */
export type Topic = string;

export interface LiveState {
  readonly isPaused: boolean;
  /** Whether the stream is there; without it, reads poll. Undefined until the first one is there or fails. */
  readonly isConnected: boolean | undefined;
  /** Since when one of both is as it is. */
  readonly since: number;
}

/** In the tab only, so that a pause of last week does not show old data today. */
const pausedKey = "todoke-paused";

export const live = createStore<LiveState>({
  isPaused: sessionStorage.getItem(pausedKey) !== null,
  isConnected: undefined,
  since: Date.now(),
});

/** The visible reads, by their key, with how often each is shown. */
const watched = new Map<string, { readonly topics: readonly Topic[]; readonly uses: number }>();

/** Returns a function that ends it. */
export function watch(key: string, topics: readonly Topic[]): () => void {
  const change = (by: 1 | -1) => {
    const uses = (watched.get(key)?.uses ?? 0) + by;
    if (uses > 0) watched.set(key, { topics, uses });
    else watched.delete(key);
    scheduleConnect();
  };
  change(1);
  return () => change(-1);
}

/** Starts following, for the lifetime of the page. */
export function startLive(client: QueryClient): void {
  queries = client;
  document.addEventListener("visibilitychange", connect);
  globalThis.addEventListener("pagehide", close);
  globalThis.addEventListener("pageshow", connect);
  scheduleConnect();
}

/** Following again reads everything visible at once. */
export function setPaused(isPaused: boolean): void {
  if (isPaused) sessionStorage.setItem(pausedKey, "yes");
  else sessionStorage.removeItem(pausedKey);
  live.set({ ...live.get(), isPaused, since: Date.now() });
  connect();
  if (!isPaused) void queries?.invalidateQueries();
}

let queries: QueryClient | undefined;
let source: EventSource | undefined;
/** What the stream was opened for. */
let address: string | undefined;
let failures = 0;
const timers: Record<"connect" | "retry" | "silence", ReturnType<typeof setTimeout> | undefined> = {
  connect: undefined,
  retry: undefined,
  silence: undefined,
};

function restart(timer: keyof typeof timers, work: () => void, ms: number): void {
  clearTimeout(timers[timer]);
  timers[timer] = setTimeout(work, ms);
}

/** Reads come and go together when a page is opened. */
const scheduleConnect = () => restart("connect", connect, 50);

const idsMax = 4;

function wantedAddress(): string | undefined {
  // A hidden window reads nothing, and a browser has six connections for all windows (HTTP/1.1).
  if (document.hidden || live.get().isPaused) return undefined;
  const topics = new Set([...watched.values()].flatMap((each) => each.topics));
  const ids = [...topics].filter((topic) => topic.startsWith("id:")).map((topic) => topic.slice("id:".length));
  const search = new URLSearchParams(ids.slice(0, idsMax).map((id) => ["id", id]));
  if (topics.has("matchmaking")) search.set("matchmaking", "yes");
  return `/v1/admin/stream?${search}`;
}

function connect(): void {
  const wanted = wantedAddress();
  if (wanted === address && (source || wanted === undefined)) return;
  close();
  address = wanted;
  if (wanted === undefined) return;
  const opened = new EventSource(wanted);
  source = opened;
  const on = (event: string, work: (data: string) => void) =>
    opened.addEventListener(event, ({ data }) => {
      listenForSilence();
      work(data);
    });
  // From here on nothing is missed; what changed before is read now.
  on("ready", () => {
    failures = 0;
    setConnected(true);
    refetch(() => true);
  });
  on("changed", (data) => {
    const changed = new Set<Topic>(JSON.parse(data));
    refetch((topics) => topics.some((topic) => changed.has(topic)));
  });
  on("beat", () => {});
  opened.onerror = () => lost();
  listenForSilence();
}

/** The gateway sends something every 15 s: a stream without it is broken, even if no error says so. */
const listenForSilence = () => restart("silence", lost, 40_000);

function lost(): void {
  close();
  setConnected(false);
  const delayMs = Math.min(30_000, 1_000 * 2 ** failures++) * (0.5 + Math.random() / 2);
  restart("retry", connect, delayMs);
}

/** A page that is left or changed is not a lost stream. */
function close(): void {
  for (const timer of Object.values(timers)) clearTimeout(timer);
  source?.close();
  source = undefined;
  address = undefined;
}

function setConnected(isConnected: boolean): void {
  if (live.get().isConnected !== isConnected) live.set({ ...live.get(), isConnected, since: Date.now() });
}

function refetch(concerns: (topics: readonly Topic[]) => boolean): void {
  for (const [key, { topics }] of watched)
    if (concerns(topics)) void queries?.invalidateQueries({ queryKey: [key], exact: true });
}
