/** Reads from the gateway, kept in one cache for the tab and read again after changes, by polls and after acts. */
import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/preact-query";
import { useEffect } from "preact/hooks";
import { live, type Topic, watch } from "./live.ts";
import { request } from "./request.ts";
import { useStore } from "./store.ts";

interface GetOptions {
  /** How long after an answer it is read again. Never, without it. */
  readonly everyMs?: number;
  /** What it shows: it is read at once when one of them changes, and polled only while the stream of changes is lost. */
  readonly topics?: readonly Topic[];
  /** How long after an answer it is read again all the same, because its topics do not cover all that it shows. */
  readonly liveEveryMs?: number;
  readonly enabled?: boolean;
}

export type Loaded<T> = UseQueryResult<T, Error>;

const noTopics: readonly Topic[] = [];

export function useGet<T>(path: string, options: GetOptions = {}): Loaded<T> {
  const { everyMs, topics = noTopics, liveEveryMs = 60_000, enabled = true } = options;
  const { isPaused, isConnected } = useStore(live);
  const isWatched = enabled && topics.length > 0;
  const pollMs = isWatched && isConnected && everyMs !== undefined ? Math.max(everyMs, liveEveryMs) : everyMs;
  useEffect(() => (isWatched ? watch(path, topics) : undefined), [path, isWatched, topics.join("\n")]);
  return useQuery<T, Error>({
    queryKey: [path],
    queryFn: ({ signal }) => request<T>(path, { signal }),
    enabled,
    // Old rows stay until the new ones are here, so that nothing flickers.
    placeholderData: keepPreviousData,
    // Counted from the last answer: a slow server is not asked more often than it can answer.
    refetchInterval: ({ state: { fetchStatus } }) =>
      pollMs === undefined || isPaused || fetchStatus === "fetching" ? false : pollMs,
    refetchOnWindowFocus: !isPaused,
    refetchOnReconnect: !isPaused,
  });
}

/** For what belongs to a player. Of older rows than the newest of each kind, only acts of staff are seen at once. */
export const ofPlayer = (id: string) => ({ topics: [`id:${id}`, "audit-log"] });
