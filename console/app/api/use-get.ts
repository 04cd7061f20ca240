/** Reads from the gateway, kept in one cache for the tab and read again by polls and after acts. */
import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/preact-query";
import { live } from "./live.ts";
import { request } from "./request.ts";
import { useStore } from "./store.ts";

interface GetOptions {
  /** How long after an answer it is read again. Never, without it. */
  readonly everyMs?: number;
  readonly enabled?: boolean;
}

export type Loaded<T> = UseQueryResult<T, Error>;

export function useGet<T>(path: string, { everyMs, enabled = true }: GetOptions = {}): Loaded<T> {
  const { isPaused } = useStore(live);
  return useQuery<T, Error>({
    queryKey: [path],
    queryFn: ({ signal }) => request<T>(path, { signal }),
    enabled,
    // Old rows stay until the new ones are here, so that nothing flickers.
    placeholderData: keepPreviousData,
    // Counted from the last answer: a slow server is not asked more often than it can answer.
    refetchInterval: ({ state: { fetchStatus } }) =>
      everyMs === undefined || isPaused || fetchStatus === "fetching" ? false : everyMs,
    refetchOnWindowFocus: !isPaused,
    refetchOnReconnect: !isPaused,
  });
}
