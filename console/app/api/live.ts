/**
 * Whether the page follows changes by itself, and the stream of hints that tell it what to read again.
 *
 * A hint names a topic and carries no data, so losing one costs latency only: each page also reads again after a while. One
 * stream serves the whole tab; a hidden tab has none.
 */
import type { QueryClient } from "@tanstack/preact-query";
import { createStore } from "./store.ts";

export type LiveState = "live" | "waiting" | "paused";

/** In the tab only, so that a pause of last week does not show old data today. */
const pausedKey = "todoke-paused";

export const live = createStore<{ readonly state: LiveState; readonly since: number }>({
  state: sessionStorage.getItem(pausedKey) ? "paused" : "waiting",
  since: Date.now(),
});

const setState = (state: LiveState) => live.get().state === state || live.set({ state, since: Date.now() });

export function pause(paused: boolean): void {
  if (paused) sessionStorage.setItem(pausedKey, "yes");
  else sessionStorage.removeItem(pausedKey);
  setState(paused ? "paused" : "waiting");
  restart();
  if (!paused) refreshAll();
}

let restart = () => {};
let refreshAll = () => {};

/** With a stream, a poll is only the guarantee; without one it is all there is. */
export function pollMs(fastMs: number): number | false {
  const { state } = live.get();
  if (state === "paused") return false;
  return state === "live" ? Math.max(fastMs, 15_000) : fastMs;
}

const streamPath = "/v1/admin/live";

/** Opens the stream while the tab is visible. `meta.topics` of a query says which hints concern it. */
export function followHints(client: QueryClient): void {
  let stream: EventSource | undefined;

  function refresh(topic: string): void {
    void client.invalidateQueries({
      predicate: ({ meta }) =>
        (meta?.topics as readonly string[] | undefined)?.some((each) => matches(each, topic)) ?? false,
    });
  }

  refreshAll = () => void client.invalidateQueries();
  restart = () => {
    stream?.close();
    stream = undefined;
    if (live.get().state === "paused" || document.hidden) return;
    stream = new EventSource(streamPath);
    stream.addEventListener("open", () => {
      setState("live");
      refreshAll(); // Changes before the stream was open.
    });
    stream.addEventListener("error", () => setState("waiting")); // The browser connects again by itself.
    stream.addEventListener("hint", ({ data }) => refresh((JSON.parse(data) as { topic: string }).topic));
  };
  document.addEventListener("visibilitychange", () => restart());
  restart();
}

/** `dead` concerns every `dead:entitlement`. */
const matches = (wanted: string, topic: string): boolean => topic === wanted || topic.startsWith(`${wanted}:`);
