/** Reads from the gateway, kept in one cache for the tab and read again on hints, by polls and after acts. */
import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/preact-query";
import { live, pollMs } from "./live.ts";
import { request } from "./request.ts";
import { useStore } from "./store.ts";

interface GetOptions {
  /** Hints after which it is read again: "dead", "player:<id>". */
  readonly topics?: readonly string[];
  /** How long after an answer it is read again if there is no stream. Never, without it. */
  readonly everyMs?: number;
  readonly enabled?: boolean;
}

export type Loaded<T> = UseQueryResult<T, Error>;

export function useGet<T>(path: string, { topics = [], everyMs, enabled = true }: GetOptions = {}): Loaded<T> {
  const { state } = useStore(live);
  return useQuery<T, Error>({
    queryKey: [path],
    queryFn: ({ signal }) => request<T>(path, { signal }),
    enabled,
    meta: { topics },
    // Old rows stay until the new ones are here, so that nothing flickers.
    placeholderData: keepPreviousData,
    // Counted from the last answer: a slow server is not asked more often than it can answer.
    refetchInterval: ({ state: { fetchStatus } }) =>
      everyMs === undefined || fetchStatus === "fetching" ? false : pollMs(everyMs),
    refetchOnWindowFocus: state !== "paused",
    refetchOnReconnect: state !== "paused",
  });
}
