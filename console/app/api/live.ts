/**
 * Whether the page follows changes by itself. Each read is repeated some seconds after its last answer, only while its tab is visible, and
 * not while it is paused.
 */
import type { QueryClient } from "@tanstack/preact-query";
import { createStore } from "./store.ts";

/** In the tab only, so that a pause of last week does not show old data today. */
const pausedKey = "todoke-paused";

export const live = createStore<{ readonly isPaused: boolean; readonly since: number }>({
  isPaused: sessionStorage.getItem(pausedKey) !== null,
  since: Date.now(),
});

/** Following again reads everything visible at once. */
export function setPaused(client: QueryClient, isPaused: boolean): void {
  if (isPaused) sessionStorage.setItem(pausedKey, "yes");
  else sessionStorage.removeItem(pausedKey);
  live.set({ isPaused, since: Date.now() });
  if (!isPaused) void client.invalidateQueries();
}
